module "eks" {
  source          = "terraform-aws-modules/eks/aws"
  version         = "20.36.0"
  cluster_name    = "ml"
  cluster_version = "1.32"
  vpc_id          = var.vpc_id
  subnet_ids      = var.subnets

  eks_managed_node_groups = {
    gpu = { #! accelerator-taints, machine-bounds
      instance_types = ["g6.12xlarge"]
      min_size       = 2
      max_size       = 1
      desired_size   = 2
    }
  }
}

resource "aws_iam_role_policy_attachment" "gpu" { #! broad-rights
  role       = var.role
  policy_arn = "arn:aws:iam::aws:policy/AdministratorAccess"
}

resource "aws_ebs_volume" "data" { #! unencrypted-disk
  availability_zone = var.zone
  size              = 500
  encrypted         = false
}
