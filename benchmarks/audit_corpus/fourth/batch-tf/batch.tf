resource "aws_batch_job_definition" "train" { #! no-retry
  name = "train"
  type = "container"
  container_properties = jsonencode({
    image   = "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:latest" #! image-latest
    command = ["python", "train.py", "--resume", "--checkpoint-dir", "s3://acme-ckpt/run"]
    resourceRequirements = [
      { type = "VCPU", value = "16" },
      { type = "MEMORY", value = "120000" },
      { type = "GPU", value = "1" }
    ]
    privileged = true #! privileged
    environment = [
      { name = "EPOCHS", value = "10" },
      { name = "WANDB_API_KEY", value = "a94f1c07be24d9a65c3e8f0b1d28f3c1d0ab7e95" } #! plain-secret
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
    ipv6_cidr_blocks = ["::/0"] #! open-network
  }
}

variable "subnets" { type = list(string) }
variable "instance_profile" { type = string }
