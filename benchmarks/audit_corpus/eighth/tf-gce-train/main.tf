resource "google_compute_instance_template" "trainer" {
  name_prefix  = "trainer-"
  machine_type = "n1-standard-16"

  guest_accelerator {
    type  = "nvidia-h100-80gb" #! machine-accelerator
    count = 8
  }

  scheduling {
    preemptible         = true
    automatic_restart   = true #! spot-restart
    on_host_maintenance = "MIGRATE" #! live-migration
  }

  disk {
    source_image = "projects/debian-cloud/global/images/family/debian-12" #! ami-without-driver
    disk_size_gb = 50
    boot         = true
  }

  network_interface {
    network = "default"
    access_config {} #! open-network
  }

  service_account {
    scopes = ["cloud-platform"] #! broad-rights
  }

  metadata = {
    startup-script = <<-EOT
      pip install torch transformers #! unpinned-packages
      export WANDB_API_KEY=8c1f0e2b7d6a4f5e9b3c1d2e3f4a5b6c7d8e9f0a #! plain-secret
      torchrun --nproc_per_node=8 train.py --output_dir /home/trainer/out #! spot-no-checkpoint
    EOT
  }
}

resource "google_compute_instance_group_manager" "trainer" {
  name               = "trainer"
  base_instance_name = "trainer"
  zone               = "us-central1-a"
  target_size        = 2
  version {
    instance_template = google_compute_instance_template.trainer.self_link_unique
  }
}

resource "google_compute_firewall" "trainer" {
  name          = "trainer-all"
  network       = "default"
  source_ranges = ["0.0.0.0/0"] #! open-network
  allow {
    protocol = "tcp"
    ports    = ["22", "6006", "8888"]
  }
}
