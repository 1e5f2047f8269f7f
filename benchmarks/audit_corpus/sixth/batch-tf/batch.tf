resource "aws_batch_compute_environment" "gpu" {
  compute_environment_name = "transcode"
  type                     = "MANAGED"
  service_role             = aws_iam_role.batch.arn

  compute_resources {
    type                = "SPOT"
    allocation_strategy = "SPOT_PRICE_CAPACITY_OPTIMIZED"
    instance_type       = ["m7g.4xlarge"]  #! no-gpu
    min_vcpus           = 64
    max_vcpus           = 32  #! bounds
    instance_role       = aws_iam_instance_profile.batch.arn
    subnets             = var.subnets
    security_group_ids  = [aws_security_group.batch.id]
  }
}

resource "aws_batch_job_definition" "transcode" {
  name = "transcode"
  type = "container"

  retry_strategy {
    attempts = 1  #! no-retry
  }

  container_properties = jsonencode({
    image   = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/ffmpeg:latest"  #! image-latest
    command = ["ffmpeg", "-hwaccel", "cuda", "-i", "Ref::input", "-c:v", "h264_nvenc", "/mnt/out/out.mp4"]
    resourceRequirements = [
      { type = "VCPU", value = "4" },
      { type = "MEMORY", value = "15000" },
      { type = "GPU", value = "1" }
    ]
  })
}

resource "aws_security_group" "batch" {
  vpc_id = var.vpc_id

  ingress {
    description = "ssh"
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]  #! open-network
  }
}
