# SPDX-License-Identifier: Apache-2.0
# Cloche as a Nomad system job, one server on each client of the node class "cloche":
#   nomad job run cloche.nomad.hcl
#
# With raw_exec it runs the program that the Debian package installed, as root, outside of any container. That is what
# Cloche wants: sandboxes go on while the server restarts, if Nomad leaves them alone (see kill_signal). Don't run it
# and the package's own unit at once: systemctl disable --now cloche.
#
# What it needs:
#  - plugin "raw_exec" { config { enabled = true } } in the client's configuration, and the Nomad client as root;
#  - privileges: everything that root has; namespaces, mounts, loop devices and control groups are made directly;
#  - control groups: sandboxes are in /sys/fs/cgroup/cloche-*, beside Nomad's own groups and outside of the task's
#    limits. Leave memory for them: `reserved` in the client's configuration, `cloche doctor` says how many fit;
#  - data path: /var/lib/cloche on a disk of the client, the same after each restart.
# For the container instead: driver = "docker" with privileged = true, the image of `make image`, and both directories
# as bind mounts; the same remarks as in deploy/kubernetes/cloche.yaml hold.
job "cloche" {
  type = "system"

  constraint {
    attribute = "${node.class}"
    value     = "cloche"
  }

  group "cloche" {
    network {
      mode = "host"
      port "api" { static = 3000 }
      port "metrics" { static = 3001 }
    }

    # Nomad starts a dead one again at once, as systemd would.
    restart {
      attempts = 10
      interval = "5m"
      delay    = "1s"
      mode     = "delay"
    }

    service {
      name     = "cloche"
      provider = "nomad"
      port     = "api"
      check {
        type     = "http"
        port     = "metrics"
        path     = "/readyz"
        interval = "10s"
        timeout  = "5s"
      }
    }

    task "server" {
      driver = "raw_exec"
      user   = "root"

      config {
        command = "/usr/bin/cloche"
        args    = ["serve", "--listen", "0.0.0.0:3000", "--metrics-listen", "127.0.0.1:3001"]
        # Sandboxes are not Nomad's to end: without this the task's whole control group is killed with it.
        no_cgroups = true
      }

      # SIGTERM stops the server and leaves sandboxes; SIGINT would end them.
      kill_signal  = "SIGTERM"
      kill_timeout = "90s"

      resources {
        cpu    = 1000
        memory = 1024
      }
    }

    # The default templates, once: minutes at the first start.
    task "templates" {
      driver = "raw_exec"
      user   = "root"
      lifecycle { hook = "poststart" }
      config {
        command = "/usr/bin/cloche"
        args    = ["template", "make", "--default"]
      }
      resources {
        cpu    = 1000
        memory = 1024
      }
    }
  }
}
