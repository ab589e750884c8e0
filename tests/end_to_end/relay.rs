//! A wire between an informer and its server that a scenario can cut and mend.
//!
//! Answers "how does an informer miss something while the server is being written to?" It passes bytes on and reads
//! none, so TLS goes through it. Invariants:
//! 1. After `cut` no byte passes: connections are closed, new ones at once after they were accepted.
//! 2. Dropping it cuts it for good.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A relay on loopback, served by the scenario's own thread.
pub(crate) struct Relay {
    address: SocketAddr,
    whole: watch::Sender<bool>,
}

impl Relay {
    /// One that leads to `server`, whole.
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let (whole, seen) = watch::channel(true);
        actix_rt::spawn(serve(listener, server, seen));
        Self { address, whole }
    }

    /// Where it is reached.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks every connection, and lets none through any more.
    pub(crate) fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// Lets new connections through.
    pub(crate) fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, whole: watch::Receiver<bool>) {
    let mut life = whole.clone();
    loop {
        tokio::select! {
            biased;
            () = gone(&mut life) => return,
            accepted = listener.accept() => {
                let (near, _) = accepted.expect("a listener accepts");
                actix_rt::spawn(pass(near, server, whole.clone()));
            }
        }
    }
}

async fn pass(mut near: TcpStream, server: SocketAddr, mut whole: watch::Receiver<bool>) {
    let passing = async {
        // A server that is not there is nothing but a connection that ends.
        let Ok(mut far) = TcpStream::connect(server).await else { return };
        let _ended = copy_bidirectional(&mut near, &mut far).await;
    };
    tokio::select! {
        biased;
        // An error says that the relay is gone.
        _ = whole.wait_for(|whole| !whole) => {}
        () = passing => {}
    }
}

/// Ends when the relay has been dropped.
async fn gone(life: &mut watch::Receiver<bool>) {
    while life.changed().await.is_ok() {}
}
