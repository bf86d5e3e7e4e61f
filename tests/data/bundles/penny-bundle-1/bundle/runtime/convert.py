print('convert')
