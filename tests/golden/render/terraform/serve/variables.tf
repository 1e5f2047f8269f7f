# What the plan cannot know. Those without a default must be given.

variable "region" {
  description = "Where the machines are: the plan's choice."
  type        = string
  default     = "eu-central-1"
}

variable "subnet_ids" {
  description = "Private subnets with a way out (NAT or endpoints), for images and weights. Several zones: spot is short in one zone at a time. Networks are made by their owners, so this module makes none."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "Give at least one subnet."
  }
}

variable "image" {
  description = "Container image that the machines run."
  type        = string
  default     = "vllm/vllm-openai:v0.32.0"
}

variable "ami_id" {
  description = "AMI of your own, to pin it. null: the public image with the driver that is the newest at the first apply; it is then kept until `terraform apply -replace=terraform_data.ami[0]`."
  type        = string
  default     = null
}

variable "instance_types" {
  description = "Machine types in order of preference; those after the first have the same chip, for when it is short."
  type        = list(string)
  default     = ["g6e.xlarge"]
}

variable "client_security_group_ids" {
  description = "Who may call the service: the balancer's group."
  type        = list(string)
  default     = []
}

variable "target_group_arns" {
  description = "Target groups of a balancer that the machines join."
  type        = list(string)
  default     = []
}

variable "alb_resource_label" {
  description = "app/NAME/ID/targetgroup/NAME/ID of the balancer: the group follows its requests. null: it keeps its size."
  type        = string
  default     = null
}

variable "session_manager" {
  description = "Let people sign in through Session Manager. There is no SSH and no open port for it."
  type        = bool
  default     = false
}

variable "budget_email" {
  description = "Who is notified when the budget is nearly spent. Empty: no budget is made."
  type        = string
  default     = ""
}

variable "budget_usd" {
  description = "Budget a month. null: none was stated."
  type        = number
  default     = 6000
}
