terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.14"
    }
  }
}

module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 21.3"

  name               = "ml-prod"
  kubernetes_version = "1.33"

  endpoint_public_access       = true
  endpoint_public_access_cidrs = ["203.0.113.0/24"]

  vpc_id     = var.vpc_id
  subnet_ids = var.private_subnets

  eks_managed_node_groups = {
    system = {
      instance_types = ["m7i.large"]
      min_size       = 2
      max_size       = 4
      desired_size   = 2
    }
    gpu = {
      ami_type       = "AL2023_x86_64_NVIDIA"
      instance_types = ["g6e.12xlarge"]
      min_size       = 0
      max_size       = 6
      desired_size   = 1
      block_device_mappings = {
        xvda = {
          device_name = "/dev/xvda"
          ebs = {
            volume_size = 300
            volume_type = "gp3"
            encrypted   = true
          }
        }
      }
      metadata_options = {
        http_endpoint               = "enabled"
        http_tokens                 = "required"
        http_put_response_hop_limit = 1
      }
      labels = { "nvidia.com/gpu.present" = "true" }
      taints = {
        gpu = { key = "nvidia.com/gpu", value = "true", effect = "NO_SCHEDULE" }
      }
    }
  }
}

variable "vpc_id" { type = string }
variable "private_subnets" { type = list(string) }
