# tag-api: serve on c7i.large (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Plain EC2 machines that run the container by themselves; the directory eks/ has the same as a node group.
# Expected: $62.00 and 4 kg CO2e a month.

locals {
  name = "tag-api"
  # Activate them as cost allocation tags, or the bill does not show them.
  tags = {
    Name                = "tag-api"
    chipwise-deployment = "tag-api"
    team                = "shop"
  }
  # What start.sh reads.
  settings = {
    IMAGE     = var.image
    NAME      = local.name
    LOG_GROUP = aws_cloudwatch_log_group.this.name
  }
  start = join("\n", concat(
    ["#!/bin/bash"],
    [for name, value in local.settings : "${name}='${replace(value, "'", "'\\''")}'"],
    [file("${path.module}/start.sh")],
  ))
}

# The public image that is kept patched.
data "aws_ssm_parameter" "ami" {
  count = var.ami_id == null ? 1 : 0
  name  = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
}

# The one of the first apply: a newer image must not replace machines because something else has changed.
# To take the newest: terraform apply -replace='terraform_data.ami[0]'
resource "terraform_data" "ami" {
  count = var.ami_id == null ? 1 : 0
  input = nonsensitive(data.aws_ssm_parameter.ami[0].value)

  lifecycle {
    ignore_changes = [input]
  }
}

data "aws_ami" "this" {
  owners = ["amazon", "aws-marketplace", "self"]

  filter {
    name   = "image-id"
    values = [var.ami_id != null ? var.ami_id : terraform_data.ami[0].output]
  }
}

resource "aws_launch_template" "machines" {
  name_prefix   = "${local.name}-"
  image_id      = data.aws_ami.this.id
  instance_type = var.instance_types[0]
  # EC2 takes 16 KiB; packed, long commands fit too.
  user_data                            = base64gzip(local.start)
  ebs_optimized                        = true
  update_default_version               = true
  instance_initiated_shutdown_behavior = "terminate"
  vpc_security_group_ids               = [aws_security_group.machines.id]

  iam_instance_profile {
    arn = aws_iam_instance_profile.machines.arn
  }

  metadata_options {
    http_endpoint = "enabled"
    # IMDSv2 only: a program that fetches any URL must not reach the credentials.
    http_tokens = "required"
    # Not from inside a container with a network of its own.
    http_put_response_hop_limit = 1
    # The script reads there which machine it is.
    instance_metadata_tags = "enabled"
  }

  block_device_mappings {
    device_name = data.aws_ami.this.root_device_name

    ebs {
      volume_type = "gp3"
      # GiB: system and image, and what the program keeps beside it.
      volume_size           = 110
      throughput            = 500
      iops                  = 3000
      encrypted             = true
      delete_on_termination = true
    }
  }

  monitoring {
    enabled = true
  }

  # Default tags of the provider do not reach what a template starts.
  tag_specifications {
    resource_type = "instance"
    tags          = local.tags
  }

  tag_specifications {
    resource_type = "volume"
    tags          = local.tags
  }

  tag_specifications {
    resource_type = "network-interface"
    tags          = local.tags
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_autoscaling_group" "machines" {
  name                = local.name
  min_size            = 1
  max_size            = 5
  desired_capacity    = 1
  vpc_zone_identifier = var.subnet_ids
  health_check_type   = length(var.target_group_arns) > 0 ? "ELB" : "EC2"
  # Seconds: image and weights come first.
  health_check_grace_period = 600
  target_group_arns         = var.target_group_arns

  mixed_instances_policy {
    instances_distribution {
      on_demand_percentage_above_base_capacity = 100
      on_demand_allocation_strategy            = "prioritized"
    }

    launch_template {
      launch_template_specification {
        launch_template_id = aws_launch_template.machines.id
        version            = aws_launch_template.machines.latest_version
      }

      dynamic "override" {
        for_each = var.instance_types

        content {
          instance_type = override.value
        }
      }
    }
  }

  instance_refresh {
    strategy = "Rolling"

    preferences {
      min_healthy_percentage = 100
    }
  }

  dynamic "tag" {
    for_each = local.tags

    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  lifecycle {
    # Scaling changes it; apply must not.
    ignore_changes = [desired_capacity]
  }

  depends_on = [aws_iam_role_policy.machines]
}

# Requests, and not the load of the processor: that of an accelerator does not show there.
resource "aws_autoscaling_policy" "requests" {
  count                     = var.alb_resource_label == null ? 0 : 1
  name                      = "requests"
  autoscaling_group_name    = aws_autoscaling_group.machines.name
  policy_type               = "TargetTrackingScaling"
  estimated_instance_warmup = 600

  target_tracking_configuration {
    # Requests a minute and machine: 70% of what the plan says one answers within the goals.
    target_value = 840

    predefined_metric_specification {
      predefined_metric_type = "ALBRequestCountPerTarget"
      resource_label         = var.alb_resource_label
    }
  }
}
