resource "aws_instance" "trainer" {
  ami           = var.ami
  instance_type = "p5.48xlarge"
  subnet_id     = var.subnet
  metadata_options {
    http_tokens = "required"
  }
  root_block_device {
    volume_size = 500
    encrypted   = true
  }
}

resource "aws_autoscaling_group" "trainers" {
  name                = "trainers"
  min_size            = 0
  max_size            = 4
  desired_capacity    = 2
  vpc_zone_identifier = [var.subnet]
  launch_template {
    id      = var.template
    version = "$Latest"
  }
}

resource "aws_security_group" "trainer" {
  name   = "trainer"
  vpc_id = var.vpc
  ingress {
    from_port       = 8000
    to_port         = 8000
    protocol        = "tcp"
    security_groups = [var.gateway]
  }
}
