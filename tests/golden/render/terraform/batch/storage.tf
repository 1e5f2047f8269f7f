# What outlives a machine.

# What the program keeps: checkpoints (what is done must outlive a lost machine).
resource "google_storage_bucket" "work" {
  name                        = "${var.project}-${local.name}"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  # A destroy stops here while there is something in it.
  force_destroy = false

  versioning {
    enabled = true
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }

    condition {
      days_since_noncurrent_time = 14
    }
  }
}
