resource "aws_ebs_volume" "scratch" { #! unencrypted-disk
  availability_zone = "eu-west-1a"
  size              = 2000
  type              = "gp3"
}

variable "db_password" { #! open-secrets
  default = "Winter-2024-gpu!"
}

resource "aws_iam_policy" "train" { #! broad-rights
  name = "train"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Effect = "Allow", Action = ["s3:*"], Resource = ["*"] },
    ]
  })
}

resource "aws_eks_node_group" "trn" { #! accelerator-taints
  cluster_name    = "ml"
  node_group_name = "trn"
  node_role_arn   = var.role
  subnet_ids      = var.subnets
  instance_types  = ["trn1.32xlarge"]
  disk_size       = 200
  scaling_config {
    min_size     = 0
    desired_size = 0
    max_size     = 4
  }
}
