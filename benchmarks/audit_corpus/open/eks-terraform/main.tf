variable "cluster_name" {
  default = "ml"
}

resource "aws_eks_node_group" "gpu" { #! accelerator-taints, machine-bounds
  cluster_name    = var.cluster_name
  node_group_name = "gpu"
  node_role_arn   = aws_iam_role.node.arn
  subnet_ids      = var.subnets
  instance_types  = ["p4d.24xlarge"]
  disk_size       = 300

  scaling_config {
    min_size     = 4
    desired_size = 4
    max_size     = 2
  }
}

resource "aws_security_group" "inference" { #! open-network
  name   = "inference"
  vpc_id = var.vpc_id

  ingress {
    from_port   = 0
    to_port     = 65535
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_iam_role_policy" "node" { #! broad-rights
  role = aws_iam_role.node.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "*", Resource = "*" }]
  })
}

resource "aws_iam_role" "node" {
  name               = "ml-node"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}
