//! Rules of schemas in the Common Expression Language, a table of them on one object: E10.
//!
//! They answer: what is the result of each function of Kubernetes' libraries, and with which text does it fail?
//! 1. One definition carries all rules of a table; the object's `n` selects the rule, so that a refusal is about one
//!    rule only.
//!
//! Next: `rules_refused.rs` has rules that no definition may carry.
use serde_json::{Value, json};

use crate::definitions::{define_rules, widget};
use crate::harness::{Request, Session, judge};

const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets?dryRun=All";

/// The fields that rules use.
pub(crate) fn fields() -> Value {
    json!({
        "n": {"type": "integer"},
        "text": {"type": "string", "maxLength": 40, "default": "Hello World"},
        "empty": {"type": "string", "maxLength": 40, "default": ""},
        "number": {"type": "number", "default": 1.5},
        "flag": {"type": "boolean", "default": true},
        "absent": {"type": "string", "maxLength": 5},
        "size": {"type": "string", "maxLength": 10, "default": "200M"},
        "version": {"type": "string", "maxLength": 20, "default": "1.2.3-rc.1"},
        "address": {"type": "string", "maxLength": 50, "default": "https://user@example.com:8080/a%20b?k=1&k=2&l=x#f"},
        "ip": {"type": "string", "maxLength": 40, "default": "192.168.0.1"},
        "net": {"type": "string", "maxLength": 40, "default": "192.168.0.0/24"},
        "names": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10}, "default": ["b", "a", "c", "a"]},
        "numbers": {"type": "array", "maxItems": 5, "items": {"type": "integer"}, "default": [3, 1, 2]},
        "none": {"type": "array", "maxItems": 5, "items": {"type": "integer"}, "default": []},
        "set": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 5}, "default": ["x", "y"]},
        "list": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "default": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string", "maxLength": 5}, "v": {"type": "integer"}}}},
        "map": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}, "default": {"one": 1, "two": 2}},
        "port": {"x-kubernetes-int-or-string": true, "default": "80%"},
        "when": {"type": "string", "format": "date-time", "default": "2024-02-29T23:30:15.25Z"},
        "day": {"type": "string", "format": "date", "default": "2024-02-29"},
        "lasts": {"type": "string", "format": "duration", "default": "1h30m"},
        "bytes": {"type": "string", "format": "byte", "maxLength": 20, "default": "aGVsbG8="},
        "in": {"type": "object", "default": {}, "properties": {"a-b": {"type": "string", "maxLength": 5, "default": "dash"},
            "namespace": {"type": "string", "maxLength": 5, "default": "word"}, "x.y/z": {"type": "integer", "default": 1},
            "a__b": {"type": "integer", "default": 2}}},
        "gone": {"type": "object", "properties": {"x": {"type": "integer"}}},
    })
}

fn table(s: &mut Session, rules: &[&str]) {
    define_rules(s, fields(), rules);
    for n in 0..rules.len() {
        s.send(Request::new("POST", WIDGETS).json(&widget(&json!({"n": n}))));
    }
}

const LANGUAGE: &[&str] = &[
    "self.numbers[0] + 2 * 3 == 9 && 7 / 2 == 3 && -7 / 2 == -3 && 7 % 3 == 1",
    "self.numbers[9] == 1",
    "self.map['three'] == 3",
    "self.absent == 'x'",
    "1 / (self.numbers[1] - 1) == 0",
    "1 % (self.numbers[1] - 1) == 0",
    "9223372036854775807 + self.numbers[1] == 0",
    "-9223372036854775807 - self.numbers[0] == 0",
    "4611686018427387904 * self.numbers[2] == 0",
    "self.number / 0.0 > 1.0",
    "self.number + 1.0 == 2.5 && self.number > 1 && self.number < 2",
    "dyn(1) == 1.0 && dyn(1u) == 1 && 2u > 1",
    "has(self.absent) || !has(self.gone) && has(self.text)",
    "has(self.gone.x)",
    "'one' in self.map && !('three' in self.map) && 3 in self.numbers",
    "self.map.all(k, self.map[k] > 0) && self.map.exists(k, k == 'two')",
    "self.numbers.exists_one(n, n > 2)",
    "self.numbers.map(n, n * 2) == [6, 2, 4] && self.numbers.map(n, n > 1, n) == [3, 2]",
    "self.numbers.filter(n, n > 1).size() == 2",
    "self.numbers.all(n, 6 / (n - 1) > 0)",
    "self.numbers.exists(n, 6 / (n - 1) == 3)",
    "self.text.size() == 11 && size(self.numbers) == 3 && size(self.map) == 2",
    "self.text.startsWith('Hello') && self.text.endsWith('World') && self.text.contains('lo W')",
    "self.text.matches('^H.*d$') && !self.text.matches('^W')",
    "self.text < 'I' && self.text + '!' == 'Hello World!'",
    "int('12') == 12 && string(12) == '12' && double('1.5') == 1.5 && uint(3) == 3u",
    "int(self.text) == 1",
    "double(self.text) == 1.0",
    "uint(-1 * self.numbers[0]) == 1u",
    "bool('true') && bool('t') && !bool('False')",
    "bool(self.text)",
    "string(1.5) == '1.5' && string(true) == 'true' && string(b'ab') == 'ab' && string(1e21) == '1e+21'",
    "int(1.9) == 1 && int(-1.9) == -1 && int(3u) == 3",
    "int(1e30 * self.number) == 1",
    "type(self.n) == int && type(self.text) == string && type(self.when) == google.protobuf.Timestamp",
    "type(self.port) == string && self.port == '80%'",
    "self.port > 5",
    "dyn(self.text) == 1",
    "self.set == ['y', 'x'] && self.set != ['x']",
    "self.list == self.list && self.list[0] != self.list[1] && self.list[1].k == 'b'",
    "(self.set + ['y', 'z']).size() == 3",
    "self.list.all(i, i.v < 2)",
    "self.__in__.a__dash__b == 'dash' && self.__in__.__namespace__ == 'word'",
    "self.__in__.x__dot__y__slash__z == 1 && self.__in__.a__underscores__b == 2",
    "self.when > timestamp('2024-01-01T00:00:00Z') && self.day == timestamp('2024-02-29T00:00:00Z')",
    "self.when.getFullYear() == 2024 && self.when.getMonth() == 1 && self.when.getDate() == 29 && self.when.getDayOfMonth() == 28",
    "self.when.getHours() == 23 && self.when.getMinutes() == 30 && self.when.getSeconds() == 15 && self.when.getMilliseconds() == 250",
    "self.when.getDayOfWeek() == 4 && self.when.getDayOfYear() == 59 && self.when.getHours('+02:00') == 1 && self.when.getHours('America/New_York') == 18",
    "self.when + self.lasts == timestamp('2024-03-01T01:00:15.25Z') && self.when - self.when == duration('0s')",
    "self.lasts == duration('90m') && self.lasts.getMinutes() == 90 && self.lasts.getHours() == 1 && self.lasts.getSeconds() == 5400",
    "string(self.lasts) == '5400s' && string(self.when) == '2024-02-29T23:30:15.25Z' && int(self.when) == 1709249415",
    "timestamp(self.text) > self.when",
    "duration(self.text) > self.lasts",
    "self.bytes == b'hello' && size(self.bytes) == 5",
    "self.flag ? self.n == 54 : false",
    "!self.flag",
    "[1, 2, 3].size() == 3 && {'a': 1}.a == 1 && {'a': 1}['a'] == 1",
    "self.text.matches(self.address)",
    "self.text.matches('[' + self.empty)",
    "self.names == ['b', 'a', 'c', 'a'] && self.names[1] == 'a' && 'z' in self.names",
    "self.none.all(n, n > 1) && !self.none.exists(n, n > 1)",
    "self.map[?'one'].hasValue() && dyn(self.numbers)[1u] == 1",
    "self.number == self.number && self.number >= 1.5 && -self.number == -1.5",
    "null == null && type(null) == null_type",
];

#[test]
fn e10_rules_of_the_language() {
    judge(|s| {
        table(s, LANGUAGE);
    });
}

const TEXTS_AND_LISTS: &[&str] = &[
    "self.text.charAt(4) == 'o' && self.text.charAt(11) == ''",
    "self.text.charAt(12) == ''",
    "self.text.indexOf('o') == 4 && self.text.indexOf('o', 5) == 7 && self.text.indexOf('z') == -1 && self.text.lastIndexOf('o') == 7",
    "self.text.indexOf('o', 20) == 1",
    "self.text.lastIndexOf('o', 6) == 4 && self.text.indexOf('') == 0 && self.text.lastIndexOf('') == 11",
    "self.text.lowerAscii() == 'hello world' && self.text.upperAscii() == 'HELLO WORLD'",
    "self.text.replace('o', '0') == 'Hell0 W0rld' && self.text.replace('o', '0', 1) == 'Hell0 World'",
    "self.text.split(' ') == ['Hello', 'World'] && self.text.split('o', 2) == ['Hell', ' World'] && self.text.split('o', 0) == []",
    "self.text.substring(6) == 'World' && self.text.substring(0, 5) == 'Hello'",
    "self.text.substring(5, 2) == ''",
    "self.text.substring(12) == ''",
    "('  ' + self.text + ' ').trim() == self.text",
    "self.names.join() == 'baca' && self.names.join('-') == 'b-a-c-a'",
    "'%s %d %.1f %b %x'.format([self.text, 5, 1.25, 5, 255]) == 'Hello World 5 1.2 101 ff'",
    "'%s %s %s'.format([self.names, self.map, self.lasts]) == '[b, a, c, a] {one: 1, two: 2} 5400s'",
    "'%d'.format([dyn(self.text)]) == ''",
    "self.text.format([]) == ''",
    "'%e %o %X %%'.format([1.5, 8, 'hi']) == '1.500000e+00 10 6869 %'",
    "strings.quote(self.text) == '\"Hello World\"'",
    "self.names.isSorted() || [1, 2, 2].isSorted() && self.none.isSorted()",
    "self.names.isSorted()",
    "self.numbers.sum() == 6 && self.none.sum() == 0 && [1.5, 2.0].sum() == 3.5",
    "self.numbers.min() == 1 && self.numbers.max() == 3 && self.names.max() == 'c'",
    "self.none.min() == 0",
    "self.none.max() == 0",
    "self.names.indexOf('a') == 1 && self.names.lastIndexOf('a') == 3 && self.names.indexOf('z') == -1",
    "self.text.find('[A-Z]o.*') == 'World' && self.text.find('[0-9]') == ''",
    "self.text.findAll('o') == ['o', 'o'] && self.text.findAll('l', 2) == ['l', 'l'] && self.text.findAll('z') == []",
    "self.text.find('[' + self.empty) == ''",
    "sets.contains(self.names, ['a', 'b']) && sets.equivalent(self.names, ['a', 'b', 'c']) && sets.intersects(self.names, ['z', 'a'])",
    "sets.contains(self.names, ['z'])",
    "self.numbers.slice(1, 3) == [1, 2] && [[1], [2, 3]].flatten() == [1, 2, 3]",
    "self.numbers.slice(1, 9) == []",
    "self.numbers.slice(2, self.none.size()) == []",
    "self.numbers.sort() == [1, 2, 3] && self.names.distinct() == ['b', 'a', 'c'] && self.numbers.reverse() == [2, 1, 3]",
    "lists.range(3) == [0, 1, 2] && self.list.sortBy(i, -i.v)[0].k == 'b'",
    "dyn([[[1]], [[3]]]).flatten(2).size() == 2",
    "self.?absent.hasValue() || self.?text.orValue('x') == 'Hello World'",
    "self.?absent.orValue('none') == 'none' && self.?absent.or(self.?text).value() == 'Hello World'",
    "self.?absent.value() == 'x'",
    "self.?text.optMap(t, t.size()).orValue(0) == 11 && self.?gone.?x.optFlatMap(x, optional.of(x + 1)).orValue(7) == 7",
    "self.map[?'one'].orValue(0) == 1 && self.map[?'x'].orValue(9) == 9 && self.numbers[?7].orValue(-1) == -1",
    "optional.of(1) == optional.of(1) && optional.none() != optional.of(1) && optional.ofNonZeroValue('').hasValue() == false",
    "[?self.?absent, 'a'].size() == 1 && {?'x': self.?absent}.size() == 0",
    "self.names.first().orValue('') == 'b'",
    "self.names.distinct().sort() == ['a', 'b', 'c'] && lists.range(0) == []",
    "has(self.absent) ? self.absent == 'x' : self.names.exists(n, n == 'nope')",
];

#[test]
fn e10_rules_with_strings_and_lists() {
    judge(|s| {
        table(s, TEXTS_AND_LISTS);
    });
}

const TYPES: &[&str] = &[
    "isQuantity(self.size) && !isQuantity(self.text) && quantity(self.size).isLessThan(quantity('1G'))",
    "quantity(self.size).add(quantity('50M')) == quantity('250M') && quantity(self.size).sub(1).compareTo(quantity(self.size)) == -1",
    "quantity('1Ki').asInteger() == 1024 && quantity('1k').isInteger() && !quantity('1500m').isInteger()",
    "quantity('1500m').asInteger() == 1",
    "quantity('1500m').asApproximateFloat() == 1.5 && quantity('-1').asInteger() == -1",
    "quantity('1') == quantity('1000m') && quantity('1.5Gi').isGreaterThan(quantity('1G')) && quantity('1000m').isInteger()",
    "quantity('1.0').isInteger() && quantity('1.5k').isInteger() && quantity('1e3').isInteger() && quantity('0.5Ki').isInteger()",
    "quantity(self.text).asInteger() == 1",
    "quantity('') == quantity('1')",
    "sign(quantity('-5')) == -1 && sign(quantity('0')) == 0",
    "quantity('9223372036854775807').add(1).isInteger()",
    "isURL(self.address) && !isURL(self.text) && isURL('/a') && !isURL('a/b')",
    "url(self.address).getScheme() == 'https' && url(self.address).getHost() == 'example.com:8080' && url(self.address).getHostname() == 'example.com' && url(self.address).getPort() == '8080'",
    "url(self.address).getEscapedPath() == '/a%20b' && url(self.address).getQuery() == {'k': ['1', '2'], 'l': ['x']}",
    "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getHost() == '[::1]:80' && url('/p').getScheme() == ''",
    "url(self.text).getHost() == ''",
    "url('https://a b').getHost() == ''",
    "url('http://a/%zz').getHost() == ''",
    "url('https://a/b') == url('https://a/b') && url('http://a?x=%20y+z').getQuery()['x'] == [' y z']",
    "isIP(self.ip) && !isIP('1.2.3') && isIP('::1') && !isIP('::ffff:1.2.3.4') && !isIP('01.2.3.4') && !isIP('fe80::1%eth0')",
    "ip(self.ip).family() == 4 && ip('::1').family() == 6 && ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified()",
    "ip('224.0.0.1').isLinkLocalMulticast() && ip('169.254.0.1').isLinkLocalUnicast() && ip(self.ip).isGlobalUnicast()",
    "ip.isCanonical('::1') && !ip.isCanonical('0:0::1') && ip('0:0::1') == ip('::1') && string(ip('2001:DB8::1')) == '2001:db8::1'",
    "ip(self.text).family() == 4",
    "ip('::ffff:1.2.3.4').family() == 4",
    "ip('fe80::1%eth0').family() == 6",
    "ip.isCanonical(self.text)",
    "isCIDR(self.net) && !isCIDR(self.ip) && !isCIDR('1.2.3.4/33') && isCIDR('::1/64')",
    "cidr(self.net).containsIP(self.ip) && !cidr(self.net).containsIP(ip('10.0.0.1')) && cidr(self.net).containsCIDR('192.168.0.0/25')",
    "cidr(self.net).containsCIDR(cidr('10.0.0.0/8')) || cidr('192.168.0.5/24').masked() == cidr(self.net)",
    "cidr(self.net).prefixLength() == 24 && cidr('192.168.0.5/24').ip() == ip('192.168.0.5') && string(cidr(self.net)) == self.net",
    "cidr(self.ip).prefixLength() == 24",
    "cidr(self.net).containsIP(self.text)",
    "cidr('1.2.3.4/33').prefixLength() == 24",
    "format.dns1123Label().validate('abc').hasValue() == false && format.dns1123Label().validate('A_b').hasValue()",
    "format.dns1123Label().validate(self.text).value()[0] == 'x'",
    "format.named('uuid').value().validate('x').value() == ['does not match the UUID format'] && !format.named('nope').hasValue()",
    "!format.dns1123Subdomain().validate('a.b').hasValue() && format.dns1035Label().validate('1a').hasValue() && !format.labelValue().validate('a.b_c').hasValue()",
    "!format.qualifiedName().validate('a.b/c').hasValue() && !format.dns1123LabelPrefix().validate('abc-').hasValue() && format.uri().validate(self.text).hasValue()",
    "format.byte().validate('=').value() == ['invalid base64'] && format.date().validate('x').value() == ['invalid date'] && format.datetime().validate('x').value() == ['invalid datetime']",
    "format.uri().validate(self.text).value() == ['']",
    "format.dns1123Subdomain() == format.named('dns1123Subdomain').value()",
    "format.labelValue().validate('-a').value() == [''] || format.qualifiedName().validate('/').value() == ['']",
];

#[test]
fn e10_rules_with_the_types_of_kubernetes() {
    judge(|s| {
        table(s, TYPES);
    });
}
