// SPDX-License-Identifier: Apache-2.0

package rpc_test

import "testing"

func TestMain(m *testing.M) { verify(m) }
