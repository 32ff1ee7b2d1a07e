//go:build !linux

package ssdp

import (
	"context"
	"errors"
)

func listen(context.Context, string, uint16) (socket, error) {
	return nil, errors.New("needs Linux")
}
