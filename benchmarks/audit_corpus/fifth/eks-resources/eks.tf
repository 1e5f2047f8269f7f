resource "aws_eks_cluster" "ml" {
  name     = "ml"
  role_arn = var.role
  vpc_config {
    subnet_ids              = var.subnets
    endpoint_private_access = true
    endpoint_public_access  = true
    public_access_cidrs     = ["0.0.0.0/0"] #! open-network
  }
}

resource "aws_eks_node_group" "gpu" {
  cluster_name    = aws_eks_cluster.ml.name
  node_group_name = "gpu"
  node_role_arn   = var.role
  subnet_ids      = var.subnets
  ami_type        = "AL2_x86_64" #! ami-without-driver
  instance_types  = ["g6.12xlarge"]
  disk_size       = 200
  scaling_config {
    min_size     = 4 #! bounds
    desired_size = 1
    max_size     = 3
  }
  taint {
    key    = "nvidia.com/gpu"
    effect = "NO_SCHEDULE"
  }
}

resource "aws_ebs_volume" "data" {
  availability_zone = "us-east-1a"
  size              = 500
  encrypted         = false #! unencrypted-disk
}

variable "role" { type = string }
variable "subnets" { type = list(string) }
