# What the plan cannot know. Those without a default must be given.

variable "subscription_id" {
  description = "Subscription that pays."
  type        = string
}

variable "location" {
  description = "Where the machines are: the plan's choice."
  type        = string
  default     = "westeurope"
}

variable "subnet_id" {
  description = "Subnet with a way out (NAT gateway): the machines have no public address."
  type        = string
}

variable "image" {
  description = "Container image that the machines run."
  type        = string
  default     = "vllm/vllm-openai:v0.32.0"
}

variable "boot_image" {
  description = "Image with the driver of A100-80-PCIe and Docker: publisher, offer, sku, version. Pin the version for production."
  type        = object({ publisher = string, offer = string, sku = string, version = string })
  default = {
    publisher = "microsoft-dsvm"
    offer     = "ubuntu-hpc"
    sku       = "2204"
    version   = "latest"
  }
}

variable "ssh_public_key" {
  description = "Azure insists on a key; no port is open for it. Use Bastion."
  type        = string
}

variable "key_vault" {
  description = "Key Vault that holds the secrets."
  type        = object({ name = string, id = string })
}

variable "client_range" {
  description = "Addresses that may call the service: your balancer's subnet. Empty: nobody."
  type        = string
  default     = ""
}

variable "backend_pool_ids" {
  description = "Backend pools of a balancer that the machines join."
  type        = list(string)
  default     = []
}
