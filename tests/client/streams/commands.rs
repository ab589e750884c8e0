//! Commands and attached processes.
//!
//! Answers "does a command get its input, give its outputs and its code, and end with its connection?"

use super::*;

fn stdin() -> AttachParams {
    AttachParams::default().stdin(true)
}

// STR-06: given a command, when it is run, then its outputs come apart, its code is readable (0, others, none
// for one that never ran with the reason of the node), and an output above the limit of `output` is an error.
// - a outputs come apart and codes are readable
// - b one that never ran has no code and the node's reason
// - c an output above the limit is an error
#[tokio::test]
async fn str_06_a_command_gives_its_outputs_and_its_code() {
    let cluster = Cluster::start().await;
    let quiet = AttachParams::default();
    let (stdout, stderr, status) =
        cluster.run(&["echo", "two  words", "é"], &quiet).await.output(100).await.unwrap();
    assert_eq!((&*stdout, &*stderr), ("two  words é\n".as_bytes(), &b""[..]));
    assert!(status.is_success() && status.code() == Some(0));
    let (stdout, stderr, status) = cluster.run(&["warn", "careful"], &quiet).await.output(100).await.unwrap();
    assert_eq!((&*stdout, &*stderr, status.code()), (&b""[..], &b"careful\n"[..], Some(0)));
    for code in [1, 3, 255] {
        let status = cluster.run(&["exit", &code.to_string()], &quiet).await.wait().await.unwrap();
        assert_eq!((status.code(), status.is_success()), (Some(code), false));
        assert_eq!(status.status().reason, "NonZeroExitCode");
    }
    let status = cluster.run(&["nonsense"], &quiet).await.wait().await.unwrap();
    assert_eq!(status.code(), None, "it never ran");
    assert!(status.status().message.contains("executable file not found"), "{status:?}");
    let long = cluster.run(&["echo", "too long"], &quiet).await.output(3).await.unwrap_err();
    assert!(matches!(long, Error::TooLarge(3)), "{long}");
}

// STR-07: given a command with input, when the input is ended, then over v5 the command reads its end; over
// v4 ending it is an error of the kind Unsupported, and writing works.
// - a over v5 the command reads its end
// - b over v4 ending it is an error and writing works
#[tokio::test]
async fn str_07_what_is_written_is_the_input_and_its_end_is_told_where_the_protocol_can() {
    let cluster = Cluster::start().await;
    let mut cat = cluster.run(&["cat"], &stdin()).await;
    assert_eq!(cat.protocol(), Protocol::V5);
    let (mut input, mut output) = (cat.stdin().unwrap(), cat.stdout().unwrap());
    assert!(cat.stdin().is_none() && cat.stdout().is_none(), "each is given once");
    input.write_all(b"one").await.unwrap();
    let mut three = [0; 3];
    output.read_exact(&mut three).await.unwrap();
    assert_eq!(&three, b"one");
    input.write_all(b"two").await.unwrap();
    input.shutdown().await.unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "two");
    assert_eq!(cat.status().await.unwrap().code(), Some(0));
    assert_eq!(cat.status().await.unwrap().code(), Some(0), "it may be asked for again");

    cluster.server.agent().speak_only_v4(true);
    let mut cat = cluster.run(&["cat"], &stdin()).await;
    assert_eq!(cat.protocol(), Protocol::V4);
    let (mut input, mut output) = (cat.stdin().unwrap(), cat.stdout().unwrap());
    input.write_all(b"one").await.unwrap();
    output.read_exact(&mut three).await.unwrap();
    let error = input.shutdown().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}");
}

// STR-08: given a command that copies its input, when a megabyte is written while its output is read, then it
// arrives whole and in order.
// - a whole and in order
#[tokio::test]
async fn str_08_a_megabyte_is_copied_through_a_command_while_it_is_written() {
    let cluster = Cluster::start().await;
    let mut cat = cluster.run(&["cat"], &stdin()).await;
    let (mut input, mut output) = (cat.stdin().unwrap(), cat.stdout().unwrap());
    let sent: Vec<u8> = (0..1 << 20).map(|number: u32| number.to_le_bytes()[1]).collect();
    let mut received = Vec::new();
    let writing = async {
        input.write_all(&sent).await.unwrap();
        drop(input);
    };
    let (_, read) = tokio::join!(writing, output.read_to_end(&mut received));
    read.unwrap();
    assert!(received == sent);
    assert_eq!(cat.status().await.unwrap().code(), Some(0));
}

// STR-09: given a terminal, when its size is told, then the command hears it, and there is one output;
// without a terminal telling a size is refused.
// - a the command hears it
// - b there is one output, and without a terminal no size
#[tokio::test]
async fn str_09_the_size_of_the_terminal_reaches_the_command() {
    let cluster = Cluster::start().await;
    let terminal = AttachParams::interactive_tty();
    let mut sizes = cluster.run(&["sizes"], &terminal).await;
    let mut output = sizes.stdout().unwrap();
    assert!(sizes.stderr().is_none(), "a terminal has one output");
    for (columns, rows, line) in [(80, 24, "80x24\n"), (120, 40, "120x40\n")] {
        sizes.resize(columns, rows).await.unwrap();
        let mut shown = vec![0; line.len()];
        output.read_exact(&mut shown).await.unwrap();
        assert_eq!(shown, line.as_bytes());
    }
    drop(sizes.stdin());
    assert_eq!(sizes.status().await.unwrap().code(), Some(0));
    let plain = cluster.run(&["sleep"], &AttachParams::default()).await;
    assert!(matches!(plain.resize(1, 1).await, Err(Error::Request(_))));
}

// STR-10: given the main process of a container, when it is attached to, then its input and outputs are those
// of a command.
// - a its input and outputs are those of a command
#[tokio::test]
async fn str_10_an_attached_process_is_spoken_with_like_a_command() {
    let cluster = Cluster::start().await;
    let mut process = cluster.pods().attach("web", &stdin()).await.unwrap();
    let (mut input, mut output) = (process.stdin().unwrap(), process.stdout().unwrap());
    input.write_all(b"hello").await.unwrap();
    let mut heard = [0; 5];
    output.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hello");
    drop(input);
    assert!(process.status().await.unwrap().is_success());
}

#[tokio::test]
async fn str_11_dropping_every_part_ends_the_command() {
    let cluster = Cluster::start().await;
    let agent = cluster.server.agent();
    let mut sleep = cluster.run(&["sleep"], &stdin()).await;
    let (input, output) = (sleep.stdin(), sleep.stdout());
    until("it runs", || agent.running() == 1).await;
    drop((sleep, input, output));
    until("it has ended", || agent.running() == 0).await;
}

#[tokio::test]
async fn str_06_the_code_arrives_although_the_command_ended_before_it_read_its_input() {
    let cluster = Cluster::start().await;
    let mut command = cluster.run(&["exit", "3"], &stdin()).await;
    let mut input = command.stdin().unwrap();
    let unread = vec![b'x'; 1 << 20];
    let (written, status) = tokio::join!(input.write_all(&unread), command.status());
    assert_eq!(status.unwrap().code(), Some(3), "{written:?}");
}
