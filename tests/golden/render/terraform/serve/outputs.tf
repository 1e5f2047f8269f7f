output "log_group" {
  description = "Where the program's output goes."
  value       = aws_cloudwatch_log_group.this.name
}

output "groups" {
  description = "Auto scaling groups."
  value       = aws_autoscaling_group.machines[*].name
}

output "security_group" {
  description = "Of the machines."
  value       = aws_security_group.machines.id
}

output "port" {
  description = "Where a machine answers."
  value       = 8000
}
