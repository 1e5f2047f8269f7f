output "log_group" {
  description = "Where the program's output goes."
  value       = aws_cloudwatch_log_group.this.name
}

output "instances" {
  description = "The machines."
  value       = aws_instance.machines[*].id
}

output "security_group" {
  description = "Of the machines."
  value       = aws_security_group.machines.id
}
