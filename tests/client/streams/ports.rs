//! Forwarded ports.
//!
//! Answers "does each port have its own stream, and is one that cannot be reached told apart?"

use super::*;

// STR-13: given several ports, when they are forwarded, then each has its own stream over one connection, in
// both directions, until all are dropped.
// - a each has its own stream over one connection
#[tokio::test]
async fn str_13_each_port_has_a_stream_of_its_own_over_one_connection() {
    let cluster = Cluster::start().await;
    let mut forward = cluster.pods().port_forward("web", &[80, 8443]).await.unwrap();
    let (mut http, mut https) = (forward.take_stream(80).unwrap(), forward.take_stream(8443).unwrap());
    assert!(forward.take_stream(80).is_none() && forward.take_stream(81).is_none());
    assert_eq!((http.port(), https.port()), (80, 8443));
    drop(forward);
    https.write_all(b"to 8443").await.unwrap();
    http.write_all(b"to 80").await.unwrap();
    let (mut of_http, mut of_https) = ([0; 5], [0; 7]);
    http.read_exact(&mut of_http).await.unwrap();
    https.read_exact(&mut of_https).await.unwrap();
    assert_eq!((&of_http, &of_https), (b"to 80", b"to 8443"));
    assert_eq!(cluster.server.agent().running(), 1, "one connection");
    drop(http);
    https.write_all(b"again..").await.unwrap();
    https.read_exact(&mut of_https).await.unwrap();
    drop(https);
    until("the connection has ended", || cluster.server.agent().running() == 0).await;
}

// STR-14: given a port that cannot be reached, when it is read, then its error names the port and the node's
// reason, and the other ports go on.
// - a its error names port and reason, and the others go on
#[tokio::test]
async fn str_14_a_port_that_cannot_be_reached_ends_with_the_reason_and_the_others_go_on() {
    let cluster = Cluster::start().await;
    cluster.server.agent().refuse_port(81, "connect: connection refused");
    let mut forward = cluster.pods().port_forward("web", &[80, 81]).await.unwrap();
    let mut refused = forward.take_stream(81).unwrap();
    let error = refused.read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<StreamError>()).unwrap();
    let StreamError::Port { port: 81, reason } = cause else { panic!("{cause:?}") };
    assert!(reason.contains("connection refused"), "{reason}");
    let mut open = forward.take_stream(80).unwrap();
    open.write_all(b"here").await.unwrap();
    let mut echoed = [0; 4];
    open.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"here");
}

// STR-15: given no port, one twice, or too many, or a command without any stream, when it is asked for, then
// it is refused and nothing is sent.
#[tokio::test]
async fn str_15_wrong_ports_are_refused_before_anything_is_sent() {
    let cluster = Cluster::start().await;
    cluster.server.clear_requests();
    let many: Vec<u16> = (1..=128).collect();
    for ports in [&[][..], &[80, 80], &many] {
        let refused = cluster.pods().port_forward("web", ports).await.unwrap_err();
        assert!(matches!(refused, Error::Request(_)), "{refused}");
    }
    let nothing = AttachParams::default().stdout(false).stderr(false);
    let both = AttachParams::default().tty(true);
    for params in [nothing, both] {
        let refused = cluster.pods().exec("web", ["echo"], &params).await.unwrap_err();
        assert!(matches!(refused, Error::Request(_)), "{refused}");
    }
    assert!(cluster.server.requests().is_empty());
}
