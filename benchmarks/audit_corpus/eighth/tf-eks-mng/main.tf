module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 21.0"

  name               = "llm-prod"
  kubernetes_version = "1.33"

  endpoint_public_access       = true
  endpoint_public_access_cidrs = ["0.0.0.0/0"] #! public-endpoint

  vpc_id     = var.vpc_id
  subnet_ids = var.private_subnets

  eks_managed_node_groups = {
    gpu = { #! no-taint*
      ami_type       = "AL2023_x86_64_STANDARD" #! ami-without-driver
      instance_types = ["g5.12xlarge", "p4d.24xlarge"] #! mixed-chips
      capacity_type  = "SPOT"

      min_size     = 4
      max_size     = 2 #! bounds
      desired_size = 4

      metadata_options = {
        http_tokens                 = "optional" #! metadata-v1
        http_put_response_hop_limit = 2
      }

      block_device_mappings = {
        xvda = {
          device_name = "/dev/xvda"
          ebs = {
            volume_size = 20 #! disk-too-small
            volume_type = "gp3"
            encrypted   = false #! unencrypted-disk
          }
        }
      }
    }
  }
}

resource "aws_iam_role_policy" "pods" {
  name = "pods"
  role = module.eks.eks_managed_node_groups["gpu"].iam_role_name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["s3:*", "iam:PassRole"] #! broad-rights
      Resource = "*"
    }]
  })
}

resource "aws_s3_bucket" "weights" {
  bucket = "acme-llm-weights"
}

resource "aws_s3_bucket_public_access_block" "weights" {
  bucket                  = aws_s3_bucket.weights.id
  block_public_acls       = false #! public-bucket
  block_public_policy     = false
  ignore_public_acls      = false
  restrict_public_buckets = false
}
