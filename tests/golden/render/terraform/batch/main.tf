# archive-summaries: batch on 4 x g2-standard-48 (gcp us-central1, spot). Written by chipwise from the plan.
# Plain machines that run the container by themselves; the directory gke/ has the same as a node pool.
# Expected: 9 d (7 d to 12 d), $3,120.00, 480.0 kg CO2e.

locals {
  name = "archive-summaries"
  labels = {
    chipwise-deployment = "archive-summaries"
    team                = "search"
  }
  # What start.sh reads.
  settings = {
    IMAGE = var.image
    NAME  = local.name
    ZONE  = var.zone
    KEEP  = "gs://${google_storage_bucket.work.name}"
  }
  start = join("\n", concat(
    ["#!/bin/bash"],
    [for name, value in local.settings : "${name}='${replace(value, "'", "'\\''")}'"],
    [file("${path.module}/start.sh")],
  ))
}

resource "google_compute_instance_template" "machines" {
  name_prefix  = "${local.name}-"
  machine_type = "g2-standard-48"
  tags         = [local.name]
  metadata = {
    # Who may sign in is a matter of IAM, not of keys on the machine.
    enable-oslogin         = "TRUE"
    block-project-ssh-keys = "TRUE"
    startup-script         = local.start
  }

  disk {
    auto_delete  = true
    boot         = true
    source_image = var.boot_image
    disk_size_gb = 480
    disk_type    = "pd-balanced"
  }

  network_interface {
    subnetwork = var.subnetwork
    # Full bandwidth needs it. No access_config: no public address.
    nic_type = "GVNIC"
  }

  scheduling {
    # Machines with accelerators do not move.
    on_host_maintenance         = "TERMINATE"
    provisioning_model          = "SPOT"
    preemptible                 = true
    automatic_restart           = false
    instance_termination_action = "STOP"
  }

  service_account {
    email = google_service_account.machines.email
    # What it may do is decided by its roles in access.tf.
    scopes = ["cloud-platform"]
  }

  shielded_instance_config {
    enable_vtpm                 = true
    enable_integrity_monitoring = true
    # Drivers are not signed in every image.
    enable_secure_boot = false
  }

  lifecycle {
    create_before_destroy = true
  }
}

# A machine that is taken away comes again by the same name and number, and goes on from its checkpoint.
resource "google_compute_instance_group_manager" "machines" {
  name               = local.name
  base_instance_name = local.name
  zone               = var.zone
  # The machines below, by name.
  target_size = null

  version {
    instance_template = google_compute_instance_template.machines.id
  }

  update_policy {
    type                  = "OPPORTUNISTIC"
    minimal_action        = "REPLACE"
    max_surge_fixed       = 0
    max_unavailable_fixed = 1
    replacement_method    = "RECREATE"
  }
}

resource "google_compute_per_instance_config" "machines" {
  count                      = 4
  name                       = "${local.name}-${count.index}"
  zone                       = var.zone
  instance_group_manager     = google_compute_instance_group_manager.machines.name
  remove_instance_on_destroy = true

  preserved_state {
    metadata = {
      chipwise-rank = tostring(count.index)
    }
  }
}
