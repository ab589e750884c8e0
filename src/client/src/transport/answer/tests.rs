//! A client certificate that is renewed while answers are open, with a real server over TLS.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::Request;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

#[cfg(feature = "http2")]
use super::super::hyper::HyperTransport;
use crate::connection_settings::ConnectionSettings;
use crate::request::RequestKind;
use crate::transport::Transport;
use crate::transport::awc::AwcTransport;
use crate::{Client, Config};

const HOUR: Duration = Duration::from_secs(3600);

fn acceptor(own: &CertifiedKey<KeyPair>) -> TlsAcceptor {
    let key = PrivateKeyDer::from_pem_slice(own.signing_key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Answers each request with a chunk, and with another one for each permit.
async fn serve(listener: TcpListener, acceptor: TlsAcceptor, more: Arc<Semaphore>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (acceptor, more) = (acceptor.clone(), Arc::clone(&more));
        tokio::task::spawn_local(async move {
            let mut socket = acceptor.accept(socket).await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            let begin = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n";
            socket.write_all(begin).await.unwrap();
            loop {
                more.acquire().await.unwrap().forget();
                if socket.write_all(b"1\r\nb\r\n").await.is_err() {
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn rest_26_a_renewed_certificate_ends_a_watch_and_no_other_stream() {
    renewed(|settings| Box::new(AwcTransport::new(settings))).await;
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn rest_26_so_it_does_over_hyper() {
    renewed(|settings| Box::new(HyperTransport::new(settings))).await;
}

async fn renewed(make: impl Fn(Arc<ConnectionSettings>) -> Box<dyn Transport>) {
    let folder = tempfile::tempdir().unwrap();
    let [ca, chain, key] = ["ca", "chain", "key"].map(|name| folder.path().join(name));
    let write = || {
        let own = generate_simple_self_signed(["someone".to_owned()]).unwrap();
        std::fs::write(&chain, own.cert.pem()).unwrap();
        std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    };
    write();
    let own = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&ca, own.cert.pem()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let config = Config::new(url).unwrap().certificate_authority_file(&ca);
    let settings =
        ConnectionSettings::new(&config.client_certificate_files(&chain, &key), Client::to_issuer).unwrap().0;
    let transport = make(Arc::new(settings));
    let more = Arc::new(Semaphore::new(0));
    let scenario = async {
        tokio::task::spawn_local(serve(listener, acceptor(&own), Arc::clone(&more)));
        let open = async |kind| {
            let request = Request::get("/").body(Bytes::new()).unwrap();
            let mut body = transport.send(request, kind).await.unwrap().into_body();
            assert_eq!(body.next().await.unwrap().unwrap(), "a");
            body
        };
        let mut stream = open(RequestKind::Stream { total: HOUR }).await;
        let mut watch = open(RequestKind::Watch { total: HOUR }).await;
        write();
        tokio::time::pause();
        assert!(watch.next().await.is_none(), "its reader asks for another one");
        let silent = tokio::time::timeout(HOUR, stream.next()).await;
        assert!(silent.is_err(), "its reader would take it for complete");
        more.add_permits(2);
        assert_eq!(stream.next().await.unwrap().unwrap(), "b");
    };
    LocalSet::new().run_until(scenario).await;
}
