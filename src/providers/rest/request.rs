//! What is sent for a call.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request};
use serde_json::Value;

use super::address::Address;
use super::template::{Shape, Template};
use crate::conversation::{Object, text_of_value};

/// The methods that a tool may have.
pub(crate) const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Headers that say where a request goes and where it ends: they are the client's own.
const OWN: [&str; 8] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "proxy-authorization"];

/// The request of a tool, with its arguments open. An entry of the query, the headers or the body that names an argument which is not given is
/// left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RestRequest {
    /// One of [`METHODS`].
    pub(crate) method: &'static str,
    /// Where it goes.
    pub(crate) address: Address,
    /// What is added to the query; of a list each item, with the same key.
    pub(crate) query: Vec<(String, Shape)>,
    /// The headers.
    pub(crate) headers: Vec<(String, Template)>,
    /// The JSON document that is sent.
    pub(crate) body: Option<Shape>,
}

impl RestRequest {
    /// Whether a header may be given: it is one, and does not say where requests go or end.
    pub(crate) fn may_have(header: &str) -> bool {
        HeaderName::from_bytes(header.as_bytes()).is_ok_and(|name| !OWN.contains(&name.as_str()))
    }

    /// The names of its arguments.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        let query = self.query.iter().map(|(_, shape)| shape).chain(&self.body).flat_map(Shape::arguments);
        self.address.arguments().chain(query).chain(self.headers.iter().flat_map(|(_, text)| text.arguments()))
    }

    /// Whether it only reads.
    pub(super) fn reads(&self) -> bool {
        self.method == "GET"
    }

    /// The request with its arguments in place, and `first` among its headers, each unless there is another of its name.
    ///
    /// # Errors
    ///
    /// An argument that cannot stand where it is to.
    pub(super) fn made(&self, arguments: &Object, first: &HeaderMap) -> Result<Request, String> {
        let mut url = self.address.url(arguments)?;
        let query = self.query.iter().filter_map(|(key, shape)| Some((key, shape.value(arguments)?)));
        let pairs: Vec<_> =
            query.flat_map(|(key, value)| texts(value).into_iter().map(move |text| (key, text))).collect();
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        let method = Method::from_bytes(self.method.as_bytes()).unwrap_or_default();
        let mut request = Request::new(method, url);
        let headers = request.headers_mut();
        headers.extend(first.clone());
        if let Some(document) = &self.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let document = document.value(arguments).unwrap_or_default();
            *request.body_mut() = Some(document.to_string().into());
        }
        for (name, template) in &self.headers {
            let Some(text) = template.text(arguments) else { continue };
            let wrong = || format!("its arguments cannot stand in the header `{name}`");
            let mut value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| wrong())?;
            // It may hold a key.
            value.set_sensitive(true);
            request.headers_mut().insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
        }
        Ok(request)
    }
}

/// A value as a query has it.
fn texts(value: Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(text_of_value).collect(),
        other => vec![text_of_value(&other)],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    fn request() -> RestRequest {
        RestRequest {
            method: "POST",
            address: Address::parse("http://a.test/{id}?fixed=1").unwrap(),
            query: vec![
                ("q".into(), Shape::Text(text("{q}"))),
                ("tag".into(), Shape::Text(text("{tags}"))),
                ("limit".into(), Shape::Other(json!(5))),
            ],
            headers: vec![("X-Trace".into(), text("t-{trace}"))],
            body: Some(Shape::Map(vec![("deep".into(), Shape::Text(text("{deep}")))])),
        }
    }

    /// Method, address, headers and body.
    fn made(arguments: Value) -> Result<String, String> {
        let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
        let first = HeaderMap::from_iter([(HeaderName::from_static("api-key"), HeaderValue::from_static("k"))]);
        let made = request().made(&arguments, &first)?;
        let mut told = format!("{} {}\n", made.method(), made.url());
        for (name, value) in made.headers() {
            told.extend([name.as_str(), ": ", std::str::from_utf8(value.as_bytes()).unwrap(), "\n"]);
        }
        Ok(told + std::str::from_utf8(made.body().unwrap().as_bytes().unwrap()).unwrap())
    }

    #[test]
    fn arguments_are_put_where_they_are_named() {
        assert_eq!(
            made(json!({"id": 7, "q": "a&b=ż +", "tags": ["x", 2], "trace": "1", "deep": {"n": [1, null]}})),
            Ok("POST http://a.test/7?fixed=1&q=a%26b%3D%C5%BC+%2B&tag=x&tag=2&limit=5\napi-key: k\ncontent-type: application/json\n\
                x-trace: t-1\n{\"deep\":{\"n\":[1,null]}}"
                .into())
        );
    }

    #[test]
    fn what_names_an_argument_that_is_not_given_is_left_out() {
        assert_eq!(
            made(json!({"id": 7, "q": null})),
            Ok("POST http://a.test/7?fixed=1&limit=5\napi-key: k\ncontent-type: application/json\n{}".into())
        );
    }

    #[test]
    fn a_header_cannot_be_left_by_its_argument() {
        for value in ["1\r\nX-Admin: yes", "1\n", "\0"] {
            let told = made(json!({"id": 7, "trace": value}));
            assert_eq!(told, Err("its arguments cannot stand in the header `X-Trace`".into()));
        }
    }

    #[test]
    fn headers_of_the_client_are_its_own() {
        let may = ["X-Trace", "Authorization", "Host", "content-length", "X Y", "", "Ä"].map(RestRequest::may_have);
        assert_eq!(may, [true, true, false, false, false, false, false]);
    }

    #[test]
    fn its_arguments_are_those_of_all_its_parts() {
        assert_eq!(request().arguments().collect::<Vec<_>>(), ["id", "q", "tags", "deep", "trace"]);
    }
}
