package main

import (
	"context"
	"log"
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
		log.Fatal(err)
	}
}
