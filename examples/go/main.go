// Command answer runs Python on this user's server: tranca serve.
package main

import (
	"context"
	"fmt"
	"os"

	"tranca"
	"tranca/client"
)

func main() {
	code := "import os; print('answer', 6*7, 'in', os.uname().nodename)"
	c, err := client.New()
	if err == nil {
		_, err = c.Run(context.Background(), tranca.Request{Code: code, Stdout: os.Stdout})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
