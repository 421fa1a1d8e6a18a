// SPDX-License-Identifier: Apache-2.0

package policies

// Schema is the JSON Schema (draft 2020-12) of creel's policy documents, for editors. Parse accepts more: the schema
// does not cover Hadoop's documents.
const Schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "Policy of a queue",
  "description": "How applications of a queue get their home, and how asks of their AMs are split over subclusters. The default of both is \"balanced\".",
  "type": "object",
  "properties": {
    "home": {
      "description": "Which subcluster becomes an application's home.",
      "type": "object",
      "properties": {
        "policy": {
          "description": "How the home is chosen.",
          "enum": ["balanced", "hash", "load", "locality", "priority", "reject", "uniform", "weighted"]
        },
        "weights": {"$ref": "#/$defs/weights"}
      },
      "additionalProperties": false,
      "if": {"properties": {"policy": {"const": "uniform"}}, "required": ["policy"]},
      "then": {"properties": {"weights": {"maxProperties": 0}}}
    },
    "split": {
      "description": "Which subclusters are asked for which part of the containers.",
      "type": "object",
      "properties": {
        "policy": {
          "description": "How an ask is split.",
          "enum": ["balanced", "broadcast", "home", "locality", "reject"]
        },
        "weights": {"$ref": "#/$defs/weights"},
        "headroomAlpha": {
          "description": "How much of the weight comes from headroom; default 0.5. For locality only.",
          "type": "number",
          "minimum": 0,
          "maximum": 1
        },
        "twinAt": {
          "description": "From how many containers on another subcluster is worth an unmanaged AM there; default 1. For balanced only.",
          "type": "integer",
          "minimum": 0,
          "maximum": 1048576
        }
      },
      "additionalProperties": false,
      "allOf": [
        {
          "if": {"not": {"properties": {"policy": {"const": "locality"}}, "required": ["policy"]}},
          "then": {"properties": {"headroomAlpha": false}}
        },
        {
          "if": {"properties": {"policy": {"not": {"const": "balanced"}}}, "required": ["policy"]},
          "then": {"properties": {"twinAt": {"const": 0}}}
        }
      ]
    }
  },
  "additionalProperties": false,
  "$defs": {
    "weights": {
      "description": "A number of any scale for each subcluster; 0, or no number while others have one, excludes it.",
      "type": "object",
      "propertyNames": {"pattern": "^[A-Za-z0-9._-]{1,128}$"},
      "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1e12},
      "not": {"minProperties": 1, "additionalProperties": {"const": 0}}
    }
  }
}
`
