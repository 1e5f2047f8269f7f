locals {
  name = "inference"
}

resource "aws_launch_template" "gpu" { #! metadata-v1
  name_prefix   = "gpu-"
  image_id      = var.ami
  instance_type = "g6e.4xlarge"
  metadata_options {
    http_tokens = "optional"
  }
  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size = 200
      encrypted   = true
    }
  }
}

resource "aws_autoscaling_group" "gpu" { #! machine-bounds
  name             = local.name
  min_size         = 6
  max_size         = 3
  vpc_zone_identifier = var.subnets
  launch_template {
    id      = aws_launch_template.gpu.id
    version = aws_launch_template.gpu.latest_version
  }
}

resource "aws_security_group_rule" "ssh" { #! open-network
  type              = "ingress"
  from_port         = 22
  to_port           = 22
  protocol          = "tcp"
  cidr_blocks       = ["0.0.0.0/0"]
  security_group_id = var.group
}

resource "aws_lb_target_group" "gpu" { #! port-mismatch
  name     = local.name
  port     = 8080
  protocol = "HTTP"
  vpc_id   = var.vpc
  health_check {
    path = "/health"
    port = "8000"
  }
}
