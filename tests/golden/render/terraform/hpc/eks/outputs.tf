output "node_group" {
  description = "Its name in the cluster."
  value       = aws_eks_node_group.this.node_group_name
}
