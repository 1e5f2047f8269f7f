# What the plan cannot know. Those without a default must be given.

variable "subscription_id" {
  description = "Subscription that pays."
  type        = string
}

variable "cluster_id" {
  description = "Resource ID of the AKS cluster, in westeurope."
  type        = string
}

variable "subnet_id" {
  description = "Subnet of the machines. null: that of the cluster."
  type        = string
  default     = null
}
