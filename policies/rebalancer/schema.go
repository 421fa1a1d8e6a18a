// SPDX-License-Identifier: Apache-2.0

package rebalancer

// Schema is the JSON Schema (draft 2020-12) of the federation's queue tree, for editors. ParseTree checks more: it
// rejects a guarantee above its maximum, and a queue named twice.
const Schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "Queues of the federation",
  "description": "Guarantees and limits of queues over all subclusters together. For omitted values the members' files apply, summed.",
  "type": "object",
  "properties": {
    "queues": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "queue": {"description": "The full path, below root.", "type": "string", "pattern": "^root\\."},
          "guarantee": {
            "description": "The queue's resources before other queues exceed theirs.",
            "$ref": "#/$defs/amounts"
          },
          "weight": {
            "description": "The queue's weight for resources beyond guarantees; default: its guarantee.",
            "$ref": "#/$defs/weight"
          },
          "maximum": {"description": "The most that the queue may use, enforced by escrow.", "$ref": "#/$defs/amounts"},
          "user_limit": {
            "description": "The most that each user of the queue may use in all subclusters together, enforced by escrow.",
            "$ref": "#/$defs/amounts"
          },
          "maximum_opportunistic": {
            "description": "The most opportunistic containers of the queue in all subclusters together, enforced by escrow.",
            "type": "integer",
            "minimum": 1
          },
          "user_limit_opportunistic": {
            "description": "The most opportunistic containers of each user of the queue in all subclusters together.",
            "type": "integer",
            "minimum": 1
          },
          "labels": {
            "description": "The same for nodes of a label, by label. The other values apply to nodes without one.",
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
            "description": "The most that is taken back from other queues for the queue in preemption_seconds.",
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
    "seconds": {"description": "Default: 60.", "type": "integer", "minimum": 1, "maximum": 86400},
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
