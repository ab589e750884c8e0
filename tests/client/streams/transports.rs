//! Streams in process and over a client of kube-rs.
//!
//! Answers "does every transport carry an upgrade, and end it?"

use super::*;

async fn speaks(pods: &Api<Pod>) {
    let words = AttachParams::default().stdin(true);
    let mut cat = pods.exec("web", ["cat"], &words).await.unwrap();
    assert_eq!(cat.protocol(), Protocol::V5);
    let (mut input, mut output) = (cat.stdin().unwrap(), cat.stdout().unwrap());
    let sent: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    let mut received = Vec::new();
    let writing = async {
        input.write_all(&sent).await.unwrap();
        drop(input);
    };
    tokio::join!(writing, output.read_to_end(&mut received)).1.unwrap();
    assert!(received == sent);
    assert_eq!(cat.status().await.unwrap().code(), Some(0));
    let mut port = pods.port_forward("web", &[80]).await.unwrap().take_stream(80).unwrap();
    port.write_all(b"hello").await.unwrap();
    let mut echoed = [0; 5];
    port.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"hello");
    let refused = pods.exec("nobody", ["cat"], &words).await.unwrap_err();
    assert!(refused.refused().unwrap().is_object_not_found(), "{refused}");
}

// STR-24: given a client in process or over one of kube-rs, when it streams, then it is as over the client's
// own connections.
// - a in process, in simulated time
// - b over a client of kube-rs: `str_24_a_client_of_kube_rs_carries_streams`
#[test]
fn str_11_and_str_24_in_process_streams_are_carried_without_a_socket_in_simulated_time() {
    Runtime::simulated(24).run(|runtime| async move {
        let mut server = ApiServer::builder().seed(24).in_process(runtime.wall_time()).start().await.unwrap();
        let client = Client::in_process(&runtime, server.service());
        let pods = client.api::<Pod>().namespaced("default");
        pod(&server, "web");
        speaks(&pods).await;
        let agent = server.agent();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(agent.running(), 0, "what is dropped has ended");

        // One part keeps the command; the last that is dropped ends it.
        let words = AttachParams::default().stdin(true);
        let mut kept = pods.exec("web", ["sleep"], &words).await.unwrap();
        let (input, output) = (kept.stdin(), kept.stdout());
        drop((kept, output));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(agent.running(), 1);
        drop(input);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(agent.running(), 0);

        // Nobody reads: the command stands still at the same place in each run.
        let mut endless = pods.exec("web", ["yes"], &AttachParams::default()).await.unwrap();
        let mut output = endless.stdout().unwrap();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(agent.running(), 1);
        output.read_exact(&mut vec![0; 1 << 20]).await.unwrap();

        // The server goes away: the output ends with an error.
        server.stop();
        let mut rest = Vec::new();
        let error = output.read_to_end(&mut rest).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
        let error = endless.status().await.unwrap_err();
        assert!(matches!(error, Error::Stream(StreamError::CutOff)), "{error}");
    });
}

#[cfg(feature = "kube")]
#[tokio::test]
async fn str_24_a_client_of_kube_rs_carries_streams() {
    let cluster = Cluster::start().await;
    let config = kube_client::Config::new(cluster.server.url().parse().unwrap());
    let kube = kube_client::Client::try_from(config).unwrap();
    let client = Client::from_kube(kube, tokio::runtime::Handle::current());
    let pods = client.api::<Pod>().namespaced("default");
    speaks(&pods).await;
    let agent = cluster.server.agent();
    until("what is dropped has ended", || agent.running() == 0).await;
    cluster.web.log("a line");
    assert_eq!(pods.logs("web", &LogParams::default()).await.unwrap(), "a line\n");
}
