//! Runs a control plane by hand, until its standard input ends:
//! `cargo run -p informer-control-plane --example serve -- KUBECONFIG [--FLAG=VALUE]...`
//!
//! Question: how do I try kubectl, or a program of mine, against the control plane of the tests? It writes a
//! kubeconfig and prints the process ids; Ctrl-D ends it. Flags go to kube-apiserver.
//!
//! Read next: `src/builder.rs`.

use std::{env, error::Error, io};

use informer_control_plane::{Binaries, ControlPlane};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let kubeconfig = arguments.next().ok_or("usage: serve KUBECONFIG [--FLAG=VALUE]...")?;
    let builder = ControlPlane::builder(Binaries::find()?).with_client_ca();
    let plane = arguments.fold(builder, |builder, flag| builder.apiserver_flag(flag)).start()?;
    plane.write_kubeconfig(&kubeconfig)?;
    println!("export KUBECONFIG={kubeconfig}");
    println!("# {}: kube-apiserver {:?}, etcd {:?}", plane.url(), plane.apiserver_id(), plane.etcd_id());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
