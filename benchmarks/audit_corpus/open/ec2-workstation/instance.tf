resource "aws_instance" "workstation" { #! small-disk, metadata-v1, unencrypted-disk, open-secrets
  ami           = var.ami
  instance_type = "g5.2xlarge"
  subnet_id     = var.subnet
  root_block_device {
    volume_size = 20
  }
  user_data = <<-EOT
    #!/bin/bash
    export WANDB_API_KEY=7d1f0c2e9b8a4f6d5e3c2b1a0f9e8d7c6b5a4f3e
    systemctl start jupyter
  EOT
}

resource "aws_autoscaling_group" "workers" { #! machine-bounds
  name             = "workers"
  min_size         = 1
  max_size         = 4
  desired_capacity = 8
  vpc_zone_identifier = [var.subnet]
  launch_template {
    id      = var.template
    version = "$Latest"
  }
}
