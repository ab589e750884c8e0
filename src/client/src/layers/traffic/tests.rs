//! Tests of what is counted of requests.

use super::*;

fn asked(path: &str) -> Asked {
    Asked::of(&Request::get(path).body(Bytes::new()).expect("a request"), RequestKind::Unary)
}

#[test]
fn each_sending_counts_under_its_verb_resource_and_code() {
    let traffic = Traffic::new("a:443", Weak::new());
    let pods = asked("/api/v1/namespaces/a/pods");
    traffic.answered(&pods, 0, Some(429), Duration::from_millis(3));
    traffic.sent_again(&pods, Some(429));
    traffic.answered(&pods, 0, Some(200), Duration::from_millis(5));
    traffic.answered(&asked("/version"), 0, None, Duration::from_secs(1));
    let figures = traffic.figures();
    let row = |row: &RequestFigures| (row.verb, row.resource.to_string(), row.code, row.count, row.retries);
    let rows: Vec<_> = figures.requests.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            ("get", String::new(), None, 1, 0),
            ("list", "pods".to_owned(), Some(200), 1, 0),
            ("list", "pods".to_owned(), Some(429), 1, 1)
        ]
    );
    let [method] = &figures.methods[..] else { panic!("{:?}", figures.methods) };
    assert_eq!((method.method, method.head.count, method.head.max), ("GET", 3, Duration::from_secs(1)));
}

#[test]
fn a_program_that_asks_for_ever_new_paths_costs_a_bounded_number_of_rows() {
    let traffic = Traffic::new("a:443", Weak::new());
    for number in 0..5_000 {
        traffic.answered(&asked(&format!("/apis/a/v1/kind{number}")), 0, Some(404), Duration::ZERO);
    }
    let figures = traffic.figures();
    assert!(figures.requests.len() <= MOST_ROWS + 1, "{} rows", figures.requests.len());
    assert_eq!(figures.requests.iter().map(|row| row.count).sum::<u64>(), 5_000, "none is lost");
    assert!(figures.requests.iter().any(|row| &*row.resource == "other" && row.count == 4_000));
}

#[test]
fn what_ended_clients_have_counted_keeps_its_verb_code_and_retries_when_there_are_too_many_rows() {
    let figures = |kinds: std::ops::Range<usize>, code: u16| {
        let traffic = Traffic::new("a:443", Weak::new());
        for number in kinds {
            let asked = asked(&format!("/apis/a/v1/kind{number}"));
            traffic.answered(&asked, 0, Some(code), Duration::ZERO);
            traffic.sent_again(&asked, Some(code));
        }
        traffic.figures()
    };
    let mut all = figures(0..900, 404);
    for (kinds, code) in [(900..1_100, 503), (1_100..1_200, 404), (1_200..1_300, 503)] {
        all.add(figures(kinds, code));
    }
    let of = |code: u16| {
        let rows = all.requests.iter().filter(|row| row.code == Some(code));
        rows.fold((0, 0), |(count, retries), row| (count + row.count, retries + row.retries))
    };
    assert_eq!((of(404), of(503)), ((1_000, 1_000), (300, 300)));
    let others = all.requests.iter().filter(|row| &*row.resource == "other").count();
    assert!(others == 2 && all.requests.len() == MOST_ROWS + 2, "{others} of {}", all.requests.len());
}

#[test]
fn a_size_at_a_bound_is_in_its_bucket() {
    let mut sizes = Sizes::default();
    [64, 65, 17_000_000].into_iter().for_each(|bytes| sizes.record(bytes));
    let counts: Vec<_> = sizes.cumulative().collect();
    assert_eq!((counts[0], counts[1], counts[11]), ((Some(64), 1), (Some(256), 2), (None, 3)));
    assert_eq!((sizes.count, sizes.total), (3, 17_000_129));
}
