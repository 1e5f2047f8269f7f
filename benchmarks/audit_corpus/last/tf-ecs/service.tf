resource "aws_ecs_task_definition" "tgi" { #! open-secrets
  family                = "tgi"
  container_definitions = jsonencode([{
    name  = "tgi"
    image = "ghcr.io/huggingface/text-generation-inference:3.3.4"
    environment = [{ name = "HF_TOKEN", value = "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" }]
  }])
}

resource "aws_autoscaling_group" "ecs" { #! machine-bounds
  name                = "ecs"
  min_size            = 2
  desired_capacity    = 1
  max_size            = 4
  vpc_zone_identifier = var.subnets
  launch_template {
    id      = aws_launch_template.ecs.id
    version = "$Latest"
  }
}

resource "aws_launch_template" "ecs" { #! metadata-v1, unencrypted-disk
  name_prefix   = "ecs-"
  image_id      = var.ami
  instance_type = "g5.xlarge"
  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size = 100
    }
  }
}
