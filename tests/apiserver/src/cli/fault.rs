//! `informer-apiserver fault`: one request to the admin port of a server that runs, and its answer as text.
//!
//! Answers: how do I set a fault switch from a shell? What the switches do is `Fault` in the library.
//! 1. One connection, one request; everything is on loopback, so plain HTTP/1.1 by hand is enough.
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use informer_apiserver::{ADMIN_PORT, Fault};
use serde_json::Value;

type Failure = Box<dyn std::error::Error>;

/// How long a server may take; one that closes its port waits for its threads.
const PATIENCE: Duration = Duration::from_secs(60);

/// Break a server that runs with --admin-port, or see what is broken.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Its admin port
    #[arg(long, default_value_t = ADMIN_PORT, env = "INFORMER_APISERVER_ADMIN_PORT", global = true)]
    admin_port: u16,
    /// End the fault after this many seconds
    #[arg(long, global = true)]
    seconds: Option<u64>,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The standing faults
    List,
    /// How often each fault that was set has taken effect
    Counts,
    #[command(flatten)]
    Fault(Fault),
}

impl Arguments {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let answer = match self.what {
            What::List => ask(self.admin_port, "GET /faults", "")?,
            What::Counts => {
                let told = ask(self.admin_port, "GET /counts", "")?;
                told.as_array().into_iter().flatten().for_each(|fault| println!("{fault}"));
                return Ok(());
            }
            What::Fault(fault) => {
                let mut body = serde_json::to_value(fault)?;
                if let (Some(seconds), Some(members)) = (self.seconds, body.as_object_mut()) {
                    members.insert("seconds".to_owned(), seconds.into());
                }
                ask(self.admin_port, "POST /faults", &body.to_string())?
            }
        };
        if let Some(why) = answer["error"].as_str() {
            return Err(why.into());
        }
        let standing = answer["faults"].as_array().map(Vec::as_slice).unwrap_or_default();
        for fault in standing {
            println!("{fault}");
        }
        if standing.is_empty() {
            println!("no standing faults");
        }
        Ok(())
    }
}

fn ask(port: u16, line: &str, body: &str) -> Result<Value, Failure> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        format!("no admin port answers on 127.0.0.1:{port} ({error}); start the server with --admin-port")
    })?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let request = format!(
        "{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("the admin port sent no answer")?;
    Ok(serde_json::from_str(body)?)
}
