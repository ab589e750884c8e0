//! Pods as a production API server sends them, as JSON texts.
//!
//! Answers "on what is decoding measured?": 8.8 KB a pod, 44 % of it `managedFields`, in the server's own order of
//! fields, without white space. `pod.json` is the pattern; a text differs from the next in its name, uid, version,
//! address and node. Invariants:
//! 1. The same number gives the same text, on every machine.
//! 2. Size and share of `managedFields` are what the figures say they are: [`pods`] checks it.

use std::ops::Range;

/// The pattern; its line ends stand only between members.
const PATTERN: &str = include_str!("pod.json");
const BYTES: Range<usize> = 8_700..8_900;
const MANAGED_PER_CENT: Range<usize> = 40..50;

/// The first `count` pods.
pub(crate) fn pods(count: usize) -> Vec<String> {
    let pods: Vec<String> = (0..count).map(pod).collect();
    for pod in &pods {
        let managed = between(pod, r#""managedFields":"#, r#"},"spec":"#);
        assert!(BYTES.contains(&pod.len()), "a pod of {} bytes", pod.len());
        assert!(MANAGED_PER_CENT.contains(&(managed * 100 / pod.len())), "{managed} bytes of managedFields");
    }
    pods
}

fn pod(number: usize) -> String {
    let dense: String = PATTERN.lines().map(str::trim).collect();
    dense
        .replace("@NAME@", &format!("checkout-api-6d5f8c9b74-{number:05}"))
        .replace("@NAMESPACE@", &format!("team-{:04}", number / 200))
        .replace("@UID@", &format!("5c1b9c0e-7a1d-4d6e-9a52-{number:012x}"))
        .replace("@VERSION@", &(184_467_001 + number).to_string())
        .replace("@IP@", &format!("10.244.{}.{}", number / 250 % 250, 1 + number % 250))
        .replace("@NODE@", &format!("node-{:04}", number % 2_000))
}

fn between(text: &str, from: &str, to: &str) -> usize {
    let start = text.find(from).expect("the pattern has it") + from.len();
    text[start..].find(to).expect("the pattern has it")
}
