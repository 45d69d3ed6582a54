//! A result as the model reads it.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::tools::ToolOutput;

/// What a server's result says: its texts, each on a line of its own, with pictures and the like named among them; where it has no text, the
/// document that it also is.
pub(super) fn output(result: CallToolResult, tool: &str) -> ToolOutput {
    let is_error = result.is_error == Some(true);
    let has_text = result.content.iter().any(has_text);
    let value = match result.structured_content {
        Some(document) if !has_text => document,
        _ => Value::String(result.content.into_iter().map(told).collect::<Vec<_>>().join("\n")),
    };
    if !is_error {
        return ToolOutput::of(value);
    }
    match value {
        Value::String(text) if text.trim().is_empty() => ToolOutput::error(format!("`{tool}` failed")),
        Value::String(text) => ToolOutput::error(text),
        document => ToolOutput::error(document.to_string()),
    }
}

fn has_text(part: &ContentBlock) -> bool {
    match part {
        ContentBlock::Text(text) => !text.text.is_empty(),
        ContentBlock::Resource(embedded) => matches!(embedded.resource, ResourceContents::TextResourceContents { .. }),
        _ => false,
    }
}

fn told(part: ContentBlock) -> String {
    match part {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => format!("[image {}, {} bytes]", image.mime_type, size(&image.data)),
        ContentBlock::Audio(audio) => format!("[audio {}, {} bytes]", audio.mime_type, size(&audio.data)),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                format!("[resource {uri} {kind}, {} bytes]", size(&blob))
            }
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {} {}]", link.name, link.uri),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// How many bytes a text in Base64 stands for.
fn size(encoded: &str) -> usize {
    let padding = encoded.bytes().rev().take_while(|byte| *byte == b'=').count();
    (encoded.len() * 3 / 4).saturating_sub(padding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(result: Value) -> ToolOutput {
        output(serde_json::from_value(result).unwrap(), "look")
    }

    #[test]
    fn parts_are_told_in_their_order() {
        let parts = json!({"content": [
            {"type": "text", "text": "one\ntwo"},
            {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGVsbG8h"},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "of a file"}},
            {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "aGk="}},
            {"type": "resource_link", "uri": "https://a.test/b", "name": "b"},
        ]});
        assert_eq!(
            read(parts),
            ToolOutput::of(
                "one\ntwo\n[image image/png, 5 bytes]\n[audio audio/wav, 6 bytes]\nof a file\n[resource file:///a.bin \
                 application/octet-stream, 2 bytes]\n[resource b https://a.test/b]"
            )
        );
    }

    #[test]
    fn a_document_is_the_result_where_there_is_no_text() {
        let document = json!({"balance": 12.5});
        assert_eq!(read(json!({"content": [], "structuredContent": document})), ToolOutput::of(document.clone()));
        let both = json!({"content": [{"type": "text", "text": "12.50"}], "structuredContent": document});
        assert_eq!(read(both), ToolOutput::of("12.50"));
        assert_eq!(read(json!({"content": []})), ToolOutput::of(""));
    }

    #[test]
    fn an_error_is_told_as_one() {
        let said = json!({"content": [{"type": "text", "text": "no such account"}], "isError": true});
        assert_eq!(read(said), ToolOutput::error("no such account"));
        assert_eq!(read(json!({"content": [], "isError": true})), ToolOutput::error("`look` failed"));
        let document = json!({"content": [], "structuredContent": {"code": 4}, "isError": true});
        assert_eq!(read(document), ToolOutput::error("{\"code\":4}"));
    }
}
