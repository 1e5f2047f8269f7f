output "log_group" {
  description = "Where the program's output goes."
  value       = aws_cloudwatch_log_group.this.name
}

output "bucket" {
  description = "What outlives the machines: checkpoints/."
  value       = aws_s3_bucket.work.id
}

output "groups" {
  description = "Auto scaling groups. To run the job again: aws autoscaling set-desired-capacity --desired-capacity 1 --auto-scaling-group-name NAME"
  value       = aws_autoscaling_group.machines[*].name
}

output "security_group" {
  description = "Of the machines."
  value       = aws_security_group.machines.id
}
