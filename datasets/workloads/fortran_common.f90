! fortran_common: Jacobi smoothing on two COMMON blocks with OpenMP.
!
! COMMON blocks are static symbols without a name of the language behind them (field_, next_), as in
! many older codes. The main thread initialises them. Best placement: both blocks cut by columns,
! part i on the node of thread i (static schedule); only the columns between two parts are shared.
!
! The start value is linear in both indices, so smoothing leaves it as it is, plus one per pass.
program fortran_common
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
  use omp_lib
  implicit none
  integer, parameter :: rows = 4096, max_columns = 2048
  real(8) :: u, v
  common /field/ u(rows, max_columns)
  common /next/ v(rows, max_columns)
  integer :: size_mib, nr_threads, nr_iterations, columns, pass, i, j
  integer(8) :: nr_wrong, total

  call arguments()
  columns = size_mib * 16
  call omp_set_dynamic(.false.)
  call omp_set_num_threads(nr_threads)
  do j = 1, columns
    do i = 1, rows
      u(i, j) = dble(i + 2 * j)
      v(i, j) = dble(i + 2 * j)
    end do
  end do
  do pass = 1, nr_iterations
    call smooth(columns)
  end do
  nr_wrong = 0
  total = 0
  !$omp parallel do schedule(static) private(i) reduction(+ : nr_wrong, total)
  do j = 1, columns
    do i = 1, rows
      if (nint(u(i, j), 8) /= i + 2 * j + nr_iterations) nr_wrong = nr_wrong + 1
      total = total + int(u(i, j), 8)
    end do
  end do
  if (nr_wrong /= 0) then
    print '(a, i0, a)', 'fortran_common: WRONG, ', nr_wrong, ' elements'
    stop 1
  end if
  print '(a, z16.16)', 'fortran_common: ok, sum ', total

contains

  subroutine smooth(columns)
    integer, intent(in) :: columns
    integer :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, columns
      v(:, j) = u(:, j) + 1
      if (j > 1 .and. j < columns) then
        do i = 2, rows - 1
          v(i, j) = (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1)) / 4 + 1
        end do
      end if
    end do
    !$omp parallel do schedule(static)
    do j = 1, columns
      u(:, j) = v(:, j)
    end do
  end subroutine smooth

  subroutine arguments()
    character(len=32) :: text
    integer :: values(3), n, status

    values = [128, 4, 200]
    do n = 1, command_argument_count()
      call get_command_argument(n, text)
      if (text == '--help') call usage(0)
      if (n > 3) call usage(2)
      read (text, *, iostat=status) values(n)
      if (status /= 0 .or. values(n) < 1) call usage(2)
    end do
    size_mib = values(1)
    nr_threads = values(2)
    nr_iterations = values(3)
    if (size_mib > 128) call usage(2)
  end subroutine arguments

  subroutine usage(status)
    integer, intent(in) :: status

    write (merge(output_unit, error_unit, status == 0), '(a)') &
      'usage: fortran_common [--help] [SIZE_MIB [THREADS [ITERATIONS]]]', '', &
      'Jacobi smoothing on two COMMON blocks, columns in blocks by thread.', '', &
      'defaults: SIZE_MIB 128, THREADS 4, ITERATIONS 200', 'SIZE_MIB is at most 128'
    call exit(status)
  end subroutine usage
end program fortran_common
