// SPDX-License-Identifier: Apache-2.0

package redisstate

import "fmt"

// maxReads limits the reads of the entries after which one of them must be whole.
const maxReads = 5

// readWhole scans all entries, and scans again if some are missing. A scan's cursor belongs to one server. After a
// failover the next server accepts it, and leaves out entries without an error. The number of entries shows that: no
// other process changes them, so a scan with as many entries has all.
func readWhole(
	scan func(cursor string) (part []any, next string, err error), count func() (int64, error),
) (map[string]string, error) {
	var read, stored int64
	for range maxReads {
		entries, err := scanAll(scan)
		if err != nil {
			return nil, err
		}
		if stored, err = count(); err != nil {
			return nil, err
		}
		if read = int64(len(entries)); read == stored {
			return entries, nil
		}
	}
	return nil, fmt.Errorf("%d of %d entries were read, %d times: start again when Redis has ended its failovers",
		read, stored, maxReads)
}

// scanAll scans all entries once.
func scanAll(scan func(cursor string) (part []any, next string, err error)) (map[string]string, error) {
	entries := map[string]string{}
	for cursor, more := "0", true; more; more = cursor != "0" {
		part, next, err := scan(cursor)
		if err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(part); i += 2 {
			key, _ := part[i].(string)
			entries[key], _ = part[i+1].(string)
		}
		cursor = next
	}
	return entries, nil
}
