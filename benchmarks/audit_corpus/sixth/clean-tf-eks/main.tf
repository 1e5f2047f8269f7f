module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 20.31"

  cluster_name    = "inference-prod"
  cluster_version = "1.32"

  cluster_endpoint_public_access       = true
  cluster_endpoint_public_access_cidrs = ["203.0.113.0/24"]

  vpc_id     = module.vpc.vpc_id
  subnet_ids = module.vpc.private_subnets

  eks_managed_node_groups = {
    system = {
      instance_types = ["m7i.xlarge"]
      min_size       = 2
      max_size       = 4
      desired_size   = 2
    }

    gpu = {
      ami_type       = "AL2023_x86_64_NVIDIA"
      instance_types = ["g5.12xlarge"]
      min_size       = 1
      max_size       = 2
      desired_size   = 2
      disk_size      = 200

      taints = {
        gpu = {
          key    = "nvidia.com/gpu"
          value  = "true"
          effect = "NO_SCHEDULE"
        }
      }
    }

    train = {
      ami_type           = "AL2023_x86_64_NVIDIA"
      instance_types     = ["g6e.2xlarge"]
      min_size           = 0
      max_size           = 8
      desired_size       = 0

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

      taints = {
        gpu = {
          key    = "nvidia.com/gpu"
          value  = "true"
          effect = "NO_SCHEDULE"
        }
      }
    }
  }
}
