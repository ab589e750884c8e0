//! Amounts compared with the results of a Go program with apimachinery v0.36.2 for the same texts.
//!
//! They answer: is each form written again as a real server writes it, or refused with the same text?
use super::*;

const WRITTEN: &str = "
    0.5=500m 1024Mi=1Gi 1000m=1 1000=1k 1500m=1500m 0.5Gi=512Mi
    1.5Gi=1536Mi 100Mi=100Mi 8Mi=8Mi 1e3=1e3 1e4=10e3 1E3=1E3
    1E=1E 1.500=1.500 1.5=1500m +1=+1 01=01 000=0
    0Mi=0 0.0=0 .=0 -=0 m=0 -1024Ki=-1Mi
    1000Ki=1000Ki 0.1Ki=102400m 0.0000000001=1n 1n=1n 0.1n=1n 1234567890123456789=1234567890123456789
    12345678901234567890=12345678901234567890 123456789012345678900000=123456789012345678900k 9Ei=9223372036854775807 1Ei=1Ei 1000000000000000000000=1 1e100=10e99
    1.1Gi=1181116006400m 16Ki=16Ki 1023Ki=1023Ki 0.3=300m 1.7Gi=1825361100800m 123456789.987654321=123456789.987654321
    0.001Ei=1152921504606846976m 77e5=7700e3 1025Ki=1025Ki 512Ki=512Ki 4096=4096 1e-3=1e-3
    1e-12=1e-9 -0.5=-500m -1e-12=-1e-9 10E=10E 1000E=1 0.000Ki=0
    1.Ki=1.Ki .5=500m 5.=5. 999999999999999999=999999999999999999 1e99999999999=10e1215752190 7.99999999999Ei=9223372036843246592953931531n
    99999999999999999999Ki=9223372036854775807 1073741824=1073741824 1073741824Ki=1Ti 0e5=0 0.0e5=0
";

#[test]
fn api_44_an_amount_is_written_again_as_go_writes_it() {
    for pair in WRITTEN.split_whitespace() {
        let (text, written) = pair.split_once('=').unwrap();
        assert_eq!(canonical(text).as_deref(), Ok(written), "{text}");
    }
    assert_eq!(canonical(" 5 ").as_deref(), Ok("5"));
}

#[test]
fn api_44_a_text_that_is_not_an_amount_is_refused_for_one_of_two_reasons() {
    for text in ["", "1x", "1.2.3", "1 Gi", "1e5.5", "true"] {
        assert_eq!(canonical(text), Err(QuantityError(FORMAT)), "{text}");
    }
    for text in ["1mi", "1e", "e", "1Ki5", "k+", "1k+", "1KiKi", "1e9999999999999999999"] {
        assert_eq!(canonical(text), Err(QuantityError(SUFFIX)), "{text}");
    }
}

#[test]
fn api_44_an_amount_once_written_stays_as_it_is() {
    for text in ["0.3", "1.7Gi", "123456789.987654321", "0.001Ei", "77e5", "1025Ki", "-2.5", "4096"] {
        let once = canonical(text).unwrap().into_owned();
        assert_eq!(canonical(&once).as_deref(), Ok(once.as_str()), "{text}");
    }
}

#[test]
fn api_44_amounts_are_added_in_the_unit_of_the_first() {
    assert_eq!(add("1", "500m"), "1500m");
    assert_eq!(add("512Mi", "512Mi"), "1Gi");
    assert_eq!(add("0", "0"), "0");
    assert_eq!(nanos("1.500"), nanos("1500m"));
}

#[test]
fn api_44_resources_are_counted_in_thousandths() {
    for (text, written) in
        [("1n", "1m"), ("123456789.987654321", "123456789988m"), ("0.1Ki", "102400m"), ("1.500", "1.500")]
    {
        assert_eq!(canonical_milli(text).as_deref(), Ok(written));
    }
}
