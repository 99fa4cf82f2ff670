//! The real kube-controller-manager and kube-scheduler beside a server, as an administrator starts them.
//!
//! In: the programs that `cargo xtask peers` built, a ready server, which controllers are wanted. Out: both
//! running on the administrator's kubeconfig, with leader election, and with the authentication and
//! authorization of their own ports delegated to the server. Never: a controller that the server runs itself.

use std::process::Command;

use crate::needs::Peers;
use crate::ports;
use crate::server::{ControlPlane, Implementation};

/// Flags of our server that leave the work to these programs.
const OURS_OFF: [&str; 1] = ["--controllers=-*"];

impl ControlPlane {
    /// Starts the server that was asked for, without controllers of its own, and both programs beside it.
    pub fn with_controllers(peers: &Peers) -> Result<ControlPlane, String> {
        let mut server = ControlPlane::start_with(Implementation::asked()?, &OURS_OFF)?;
        server.start_controllers(peers, "*")?;
        Ok(server)
    }

    /// Starts both programs beside a server that runs.
    ///
    /// - `wanted`: as kube-controller-manager's `--controllers` has it.
    ///
    /// # Errors
    /// One of them does not start.
    pub fn start_controllers(&mut self, peers: &Peers, wanted: &str) -> Result<(), String> {
        let server = self;
        let [managers, schedulers] = ports::free()?;
        let shared = |port: u16, server: &ControlPlane| {
            let kubeconfig = server.kubeconfig().display().to_string();
            [
                format!("--kubeconfig={kubeconfig}"),
                format!("--authentication-kubeconfig={kubeconfig}"),
                format!("--authorization-kubeconfig={kubeconfig}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                "--cert-dir=serving".to_owned(),
                // A test kills the server, and a loaded machine takes its time to bring it back.
                "--leader-elect-lease-duration=60s".to_owned(),
                "--leader-elect-renew-deadline=50s".to_owned(),
            ]
        };
        let mut manager = Command::new(&peers.controller_manager);
        manager.args(shared(managers, server)).arg(format!("--controllers={wanted}"));
        manager.arg(format!("--root-ca-file={}", server.authority().display()));
        // Each controller is an account of its own, with tokens that it asks for.
        manager.arg("--use-service-account-credentials=true");
        let mut scheduler = Command::new(&peers.scheduler);
        scheduler.args(shared(schedulers, server));
        server.tell("KUBE_CONTROLLER_MANAGER_PORT", managers.to_string());
        server.tell("KUBE_SCHEDULER_PORT", schedulers.to_string());
        server.start_beside("kube-controller-manager", &mut manager)?;
        server.start_beside("kube-scheduler", &mut scheduler)
    }
}
