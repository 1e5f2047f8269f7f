resource "aws_batch_job_definition" "train" {
  name = "train"
  type = "container"
  retry_strategy { attempts = 5 }
  container_properties = jsonencode({
    image   = "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:3.1.0"
    command = ["python", "train.py", "--resume", "--checkpoint-dir", "s3://acme-ckpt/run"]
    resourceRequirements = [
      { type = "VCPU", value = "16" },
      { type = "MEMORY", value = "120000" },
      { type = "GPU", value = "1" }
    ]
    environment = [
      { name = "EPOCHS", value = "10" },
    ]
  })
}

resource "aws_batch_compute_environment" "gpu" {
  name = "gpu"
  type = "MANAGED"
  compute_resources {
    type                = "SPOT"
    allocation_strategy = "SPOT_PRICE_CAPACITY_OPTIMIZED"
    instance_type       = ["g5.4xlarge"]
    min_vcpus           = 0
    max_vcpus           = 256
    subnets             = var.subnets
    security_group_ids  = [aws_security_group.batch.id]
    instance_role       = var.instance_profile
  }
}

resource "aws_security_group" "batch" {
  name = "batch"
  ingress {
    from_port        = 22
    to_port          = 22
    protocol         = "tcp"
    cidr_blocks      = ["10.20.0.0/16"]
  }
}

variable "subnets" { type = list(string) }
variable "instance_profile" { type = string }
