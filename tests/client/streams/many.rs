//! A thousand logs at once.
//!
//! Answers "is what they hold bounded, and does each get its turn?" In counts, never in time: in a simulation, whose
//! clock moves only when nobody has anything left to do, and over sockets.

use std::cell::Cell;
use std::rc::Rc;

use super::*;

const STREAMS: usize = 1000;
/// What waits of one log for its reader: eight chunks of the body, one on its way, the lines of one that is being read.
const HELD: u64 = 10 * 5000;
const LINES: usize = 500;

#[test]
fn str_23_a_thousand_logs_without_end_hold_a_bounded_amount_and_each_gets_its_turn() {
    Runtime::simulated(23).run(|runtime| async move {
        let server = ApiServer::builder().seed(23).in_process(runtime.wall_time()).start().await.unwrap();
        let client = Client::in_process(&runtime, server.service());
        let pods = client.api::<Pod>().namespaced("default");
        let mut logs = Vec::new();
        for number in 0..STREAMS {
            let name = format!("web-{number}");
            let container = pod(&server, &name);
            container.log_without_end(&format!("a line of {name} {}", "x".repeat(380)));
            logs.push((container, pods.log_stream(&name, &follow()).await.unwrap()));
        }
        // Nobody reads: a second of the simulation passes only when nothing moves any more.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let sent: Vec<u64> = logs.iter().map(|(container, _)| container.log_bytes_sent()).collect();
        assert!(sent.iter().all(|sent| (1..=HELD).contains(sent)), "{:?}", sent.iter().max());

        // All are read at once: when the first has its lines, the last has most of them.
        let slowest = Rc::new(Cell::new(None));
        let counts: Rc<Vec<Cell<usize>>> = Rc::new((0..STREAMS).map(|_| Cell::new(0)).collect());
        let reading = logs.into_iter().enumerate().map(|(number, (container, mut log))| {
            let (counts, slowest) = (Rc::clone(&counts), Rc::clone(&slowest));
            // A task each: within one task they would share its turn.
            actix_rt::spawn(async move {
                for _ in 0..LINES {
                    let line = log.next().await.unwrap().unwrap();
                    assert!(line.starts_with(&format!("a line of web-{number} ")), "{line}");
                    counts[number].set(counts[number].get() + 1);
                }
                if slowest.get().is_none() {
                    slowest.set(counts.iter().map(Cell::get).min());
                }
                (container, log)
            })
        });
        let logs = futures_util::future::try_join_all(reading).await.unwrap();
        let slowest = slowest.get().unwrap();
        assert!(slowest > LINES / 3, "one had {LINES} lines when another had {slowest}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let most = HELD + 500 * 420;
        assert!(logs.iter().all(|(container, _)| container.log_bytes_sent() <= most));

        let (containers, logs): (Vec<_>, Vec<_>) = logs.into_iter().unzip();
        drop(logs);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(containers.iter().all(|container| container.log_readers() == 0), "dropping ends each");
    });
}

// STR-23: given 1,000 logs at once, when nobody reads, then what each holds is bounded; when all are read,
// none starves; dropping ends each.
// - a what each holds is bounded, none starves, dropping ends each:
//   `str_23_a_thousand_logs_without_end_hold_a_bounded_amount_and_each_gets_its_turn`
// - b also over sockets
#[tokio::test]
async fn str_23_a_thousand_logs_are_followed_at_once_over_sockets() {
    let cluster = Cluster::start().await;
    let mut logs = Vec::new();
    for number in 0..STREAMS {
        let name = format!("web-{number}");
        let container = pod(&cluster.server, &name);
        container.log("first");
        logs.push((container, cluster.pods().log_stream(&name, &follow()).await.unwrap()));
    }
    for (container, log) in &mut logs {
        assert_eq!(&*log.next().await.unwrap().unwrap(), "first");
        container.log("second");
    }
    for (_, log) in &mut logs {
        assert_eq!(&*log.next().await.unwrap().unwrap(), "second");
    }
    let (containers, logs): (Vec<_>, Vec<_>) = logs.into_iter().unzip();
    drop(logs);
    until("nobody follows any more", || containers.iter().all(|container| container.log_readers() == 0))
        .await;
}
