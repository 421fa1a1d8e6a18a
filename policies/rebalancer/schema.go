// SPDX-License-Identifier: Apache-2.0

package rebalancer

// Schema is the JSON Schema (draft 2020-12) of the federation's queue tree, for editors.
// ParseTree decides: it also sees that a guarantee is within its maximum, and a queue named
// twice.
const Schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "Queues of the federation",
  "description": "What queues are guaranteed and may use in all subclusters together. What it leaves out is as the members' files say, summed.",
  "type": "object",
  "properties": {
    "queues": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "queue": {"description": "The whole path, below root.", "type": "string", "pattern": "^root\\."},
          "guarantee": {
            "description": "What the queue gets before others get more than theirs.",
            "$ref": "#/$defs/amounts"
          },
          "weight": {
            "description": "By which the queue takes what is beyond guarantees; by guarantee unless given.",
            "$ref": "#/$defs/weight"
          },
          "maximum": {"description": "What the queue may use at most, kept by escrow.", "$ref": "#/$defs/amounts"},
          "user_limit": {
            "description": "What each user of the queue may use in all subclusters together, kept by escrow.",
            "$ref": "#/$defs/amounts"
          },
          "labels": {
            "description": "The same on nodes of a label, by label. All that is beside it is of nodes without one.",
            "type": "object",
            "propertyNames": {"pattern": "^[0-9a-zA-Z][0-9a-zA-Z_-]{0,254}$"},
            "additionalProperties": {
              "type": "object",
              "properties": {
                "guarantee": {"$ref": "#/$defs/amounts"},
                "weight": {"$ref": "#/$defs/weight"},
                "maximum": {"$ref": "#/$defs/amounts"},
                "user_limit": {"$ref": "#/$defs/amounts"},
                "preemption": {"$ref": "#/$defs/amounts"},
                "preemption_seconds": {"$ref": "#/$defs/seconds"}
              },
              "additionalProperties": false
            }
          },
          "preemption": {
            "description": "The most that is taken back from others for the queue in preemption_seconds.",
            "$ref": "#/$defs/amounts"
          },
          "preemption_seconds": {"$ref": "#/$defs/seconds"},
          "optout": {"description": "Homes, splits and escrow do not follow the plan for this queue.", "type": "boolean"}
        },
        "required": ["queue"],
        "additionalProperties": false
      }
    }
  },
  "additionalProperties": false,
  "$defs": {
    "seconds": {"description": "60 unless given.", "type": "integer", "minimum": 1, "maximum": 86400},
    "weight": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9},
    "amounts": {
      "oneOf": [
        {"description": "A part of the federation, such as 40%.", "type": "string", "pattern": "^\\s*0*(100(\\.0*)?|[1-9][0-9]?(\\.[0-9]*)?|\\.[0-9]*[1-9][0-9]*)\\s*%\\s*$"},
        {
          "description": "Memory in MB, vCores, other types by name; or percent of the federation.",
          "type": "object",
          "properties": {"percent": {"type": "number", "exclusiveMinimum": 0, "maximum": 100}},
          "additionalProperties": {"type": "integer", "minimum": 0, "exclusiveMaximum": 140737488355327}
        }
      ]
    }
  }
}
`
