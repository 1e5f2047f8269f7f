# Who may reach the machines: nobody who is not named here.

data "aws_subnet" "first" {
  id = var.subnet_ids[0]
}

resource "aws_security_group" "machines" {
  name_prefix = "${local.name}-"
  description = "Machines of ${local.name}"
  vpc_id      = data.aws_subnet.first.vpc_id

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_egress_rule" "https" {
  security_group_id = aws_security_group.machines.id
  description       = "Images, weights and AWS itself"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

# EFA needs every protocol among the machines, both ways; nobody else gets in.
resource "aws_vpc_security_group_ingress_rule" "each_other" {
  security_group_id            = aws_security_group.machines.id
  description                  = "Among the machines"
  referenced_security_group_id = aws_security_group.machines.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "each_other" {
  security_group_id            = aws_security_group.machines.id
  description                  = "Among the machines"
  referenced_security_group_id = aws_security_group.machines.id
  ip_protocol                  = "-1"
}
