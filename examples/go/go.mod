module example.com/answer

go 1.26.3

require tranca v0.0.0

replace tranca => ../..
