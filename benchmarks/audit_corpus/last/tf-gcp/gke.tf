resource "google_compute_instance" "gpu" { #! small-disk
  name         = "gpu"
  machine_type = "a2-highgpu-1g"
  zone         = "europe-west4-a"
  boot_disk {
    initialize_params {
      image = "debian-12"
      size  = 20
    }
  }
  network_interface {
    network = "default"
  }
}

resource "google_compute_firewall" "jupyter" { #! open-network
  name          = "jupyter"
  network       = "default"
  source_ranges = ["0.0.0.0/0"]
  allow {
    protocol = "tcp"
    ports    = ["8888"]
  }
}
