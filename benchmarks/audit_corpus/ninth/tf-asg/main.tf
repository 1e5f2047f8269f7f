terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.60" }
  }
}

data "aws_ami" "dlami" {
  most_recent = true
  owners      = ["amazon"]

  filter {
    name   = "name"
    values = ["Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04)*"]
  }
}

resource "aws_security_group" "gpu" {
  name   = "gpu"
  vpc_id = var.vpc_id

  ingress {
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"] #! public-endpoint
  }

  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_launch_template" "gpu" {
  name_prefix   = "gpu-"
  image_id      = data.aws_ami.dlami.id
  instance_type = "g5.2xlarge"
  key_name      = "ops"

  metadata_options {
    http_tokens = "optional" #! metadata-v1
  }

  block_device_mappings {
    device_name = "/dev/sda1"

    ebs {
      volume_size = 20 #! disk-too-small
      volume_type = "gp2"
      encrypted   = false #! unencrypted-disk
    }
  }

  user_data = base64encode(<<-EOT
    #!/bin/bash
    curl -sSL https://get.example.com/agent.sh | bash #! pipe-to-shell
    docker run --gpus all -p 8000:8000 -e HF_TOKEN=hf_QwErTyUiOpAsDfGhJkLzXcVbNm0987654321 \
      vllm/vllm-openai:latest --model meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4 --port 9000
  EOT
  )
}

resource "aws_autoscaling_group" "gpu" { #! image-latest, tp-above-devices, plain-secret, model-above-memory
  min_size            = 2
  max_size            = 1 #! bounds
  desired_capacity    = 2
  vpc_zone_identifier = var.subnets
  health_check_type   = "ELB"
  health_check_grace_period = 60 #! probe-before-load

  launch_template {
    id      = aws_launch_template.gpu.id
    version = "$Latest"
  }
}

resource "aws_autoscaling_policy" "cpu" {
  name                   = "cpu"
  autoscaling_group_name = aws_autoscaling_group.gpu.name
  policy_type            = "TargetTrackingScaling"

  target_tracking_configuration {
    predefined_metric_specification {
      predefined_metric_type = "ASGAverageCPUUtilization" #! hpa-on-cpu
    }
    target_value = 50
  }
}

resource "aws_iam_role_policy" "gpu" {
  role = aws_iam_role.gpu.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = "s3:*" #! broad-rights
      Resource = "*"
    }]
  })
}

resource "aws_iam_role" "gpu" {
  name = "gpu"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "ec2.amazonaws.com" }, Action = "sts:AssumeRole" }]
  })
}

variable "vpc_id" { type = string }
variable "subnets" { type = list(string) }
